// SPDX-License-Identifier: MIT
// cargo asks for a library.
