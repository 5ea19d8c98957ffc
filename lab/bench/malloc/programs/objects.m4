dnl SPDX-License-Identifier: MIT
dnl Macros that are defined, called and changed; ROUNDS is how much.
define(`forloop', `pushdef(`$1', `$2')_forloop($@)popdef(`$1')')dnl
define(`_forloop', `$4`'ifelse($1, `$3', `', `define(`$1', incr($1))$0($@)')')dnl
forloop(`i', 1, ROUNDS, `define(`name'eval(i % 3000), `text i of 'eval(i * 7 % 1000))dnl
len(translit(patsubst(defn(`name'eval(i * 31 % 3000)), `[0-9]+', `<\&>'), `a-z', `A-Z'))')
