/* SPDX-License-Identifier: MIT */
/* The plug-in of plugin_unload.c. */
long plugin_answer(unsigned question);

long plugin_answer(unsigned question)
{
    return (long)question * 2;
}
