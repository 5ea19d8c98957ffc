# SPDX-License-Identifier: MIT
"""What tools/test/soak runs for hours, keeps and adds up."""
