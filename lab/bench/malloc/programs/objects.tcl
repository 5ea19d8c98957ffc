# SPDX-License-Identifier: MIT
# Dictionaries, lists, strings and procedures; the argument is how much.
set scale [lindex $argv 0]
set state 1
proc random {bound} {
    global state
    set state [expr {$state * 48271 % 2147483647}]
    return [expr {$state % $bound}]
}
proc work {count} {
    set total 0
    for {set i 1} {$i <= $count} {incr i} {
        set key key[random 10000]
        lappend entries($key) [list $i "entry $i of $key"]
        if {$i % 4 == 0} { unset -nocomplain entries(key[random 10000]) }
        if {$i % 8 == 0} { set text [join [split "a,$i,$key" ,] --]; incr total [string length [string map {k <k>} $text]] }
    }
    foreach key [array names entries] { foreach entry $entries($key) { incr total [string length [lindex $entry 1]] } }
    return $total
}
puts [work [expr {int(150000 * $scale)}]]
