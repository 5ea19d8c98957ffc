/* SPDX-License-Identifier: MIT */
/* What plugin_unload.c loads and unloads. */
long plugin_answer(unsigned question);

long plugin_answer(unsigned question)
{
    return (long)question * 2;
}
