# SPDX-License-Identifier: MIT
# The machine of moves.c: a PC with a screen, and a device whose memory moves.
CONFIG_I440FX=y
CONFIG_PCI_TESTDEV=y
CONFIG_VGA_PCI=y
