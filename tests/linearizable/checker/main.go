// SPDX-License-Identifier: MIT

// Checks histories (tests/linearizable/history.h) for linearizability: prints "linearizable", or "not linearizable"
// and the operations of the first key whose history has no order that explains it (exit status 1), or "unknown" if the search took too long (2).
//
//	linearizable FILE...
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

const patience = 60 * time.Second

type input struct {
	kind                  string
	key, argument, second uint64
}

// The values of one key as text, each between spaces, the first in front: a state must be comparable.
type state = string

func word(value uint64) string { return fmt.Sprintf(" %d ", value) }

func first(s state) uint64 {
	var value uint64
	fmt.Sscan(s, &value)
	return value
}

func has(s state, value uint64) bool { return strings.Contains(s, word(value)) }

func exchange(s state, old uint64, fresh string) state {
	return strings.Replace(s, word(old), fresh, 1)
}

// The values of an address's prefixes, the shortest first; 0 where there is none.
type routes = [5]uint64

func routesOf(s state) (r routes) {
	fmt.Sscan(s, &r[0], &r[1], &r[2], &r[3], &r[4])
	return
}

func stepRoutes(s state, i input, result uint64) (bool, state) {
	r := routesOf(s)
	old := r[i.second%uint64(len(r))]
	switch i.kind {
	case "route-lookup":
		longest := uint64(0)
		for _, value := range r {
			if value != 0 {
				longest = value
			}
		}
		return result == longest, s
	case "route-add":
		if old != 0 {
			return result == 0, s
		}
		r[i.second] = i.argument
		return result == 1, fmt.Sprint(r[0], r[1], r[2], r[3], r[4])
	}
	if old != 0 { // replace, remove: the argument is 0
		r[i.second] = i.argument
	}
	return result == old, fmt.Sprint(r[0], r[1], r[2], r[3], r[4])
}

// Whether the operation may return this result in this state, and the state after it.
func step(before, in, out interface{}) (bool, interface{}) {
	s, i, result := before.(state), in.(input), out.(uint64)
	front := first(s)
	switch i.kind {
	case "lookup":
		return result == front, s
	case "add":
		return result == 0, word(i.argument) + s
	case "unique":
		if front == 0 {
			return result == 0, word(i.argument)
		}
		return result == front, s
	case "put":
		if front == 0 {
			return result == 0, word(i.argument)
		}
		return result == front, exchange(s, front, word(i.argument))
	case "swap":
		return result == front, exchange(s, front, word(i.argument))
	case "exchange":
		return has(s, i.argument) == (result == 1), exchange(s, i.argument, word(i.second))
	case "remove":
		return has(s, i.argument) == (result == 1), exchange(s, i.argument, "")
	case "take":
		return result == front, exchange(s, front, "")
	case "route-lookup", "route-add", "route-replace", "route-remove":
		ok, after := stepRoutes(s, i, result)
		return ok, after
	}
	panic("no such operation: " + i.kind)
}

func describe(in, out interface{}) string {
	i := in.(input)
	return fmt.Sprintf("key %d: %s(%d, %d) -> %d", i.key, i.kind, i.argument, i.second, out.(uint64))
}

var model = porcupine.Model{
	Init:              func() interface{} { return "" },
	Step:              step,
	DescribeOperation: describe,
}

// A history for each key: linearizable are all together if and only if each is.
type histories map[uint64][]porcupine.Operation

func (keys histories) add(op porcupine.Operation, in input, result uint64) {
	op.Input, op.Output = in, result
	keys[in.key] = append(keys[in.key], op)
}

// A scan promises that keys rise, and nothing about two keys at one moment: so it is a lookup of each key, of which nothing
// is asked but that it took effect between the scan's call and its return. Returns what is wrong with the order.
func (keys histories) addScan(op porcupine.Operation, in input, found *strings.Reader) string {
	key := in.key
	for {
		var there, value uint64
		if _, err := fmt.Fscan(found, &there, &value); err != nil {
			break
		}
		if there < key || there > in.argument {
			return fmt.Sprintf("a scan from %d to %d found %d where %d or more was due", in.key, in.argument, there, key)
		}
		for ; key < there; key++ {
			keys.add(op, input{kind: "lookup", key: key}, 0)
		}
		keys.add(op, input{kind: "lookup", key: key}, value)
		key++
	}
	for ; key <= in.argument; key++ {
		keys.add(op, input{kind: "lookup", key: key}, 0)
	}
	return ""
}

func read(from io.Reader) (keys histories, wrong string, err error) {
	keys = histories{}
	lines := bufio.NewScanner(from)
	for lines.Scan() && wrong == "" {
		var op porcupine.Operation
		var in input
		var result uint64
		line := strings.NewReader(lines.Text())
		if _, err := fmt.Fscan(line, &op.ClientId, &in.key, &in.kind, &in.argument, &in.second, &result,
			&op.Call, &op.Return); err != nil {
			return nil, "", fmt.Errorf("%q: %w", lines.Text(), err)
		}
		if in.kind == "scan" {
			wrong = keys.addScan(op, in, line)
		} else {
			keys.add(op, in, result)
		}
	}
	return keys, wrong, lines.Err()
}

func tell(history []porcupine.Operation) {
	sort.Slice(history, func(i, j int) bool { return history[i].Call < history[j].Call })
	begin := history[0].Call
	for _, op := range history {
		fmt.Printf("  thread %d, %d to %d ns: %s\n", op.ClientId, op.Call-begin, op.Return-begin,
			describe(op.Input, op.Output))
	}
}

func check(name string) int {
	file, err := os.Open(name)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	defer file.Close()
	keys, wrong, err := read(file)
	if err != nil || len(keys) == 0 {
		fmt.Fprintln(os.Stderr, name, "is no history:", err)
		return 3
	}
	if wrong != "" {
		fmt.Println(name + ": not linearizable: " + wrong)
		return 1
	}
	operations, concurrent := 0, 0
	for _, history := range keys {
		operations += len(history)
		concurrent += overlaps(history)
		switch porcupine.CheckOperationsTimeout(model, history, patience) {
		case porcupine.Illegal:
			fmt.Printf("%s: not linearizable: key %d, %d operations\n", name, history[0].Input.(input).key, len(history))
			tell(history)
			return 1
		case porcupine.Unknown:
			fmt.Println(name + ": unknown")
			return 2
		}
	}
	fmt.Printf("%s: linearizable: %d operations on %d keys, %d began while another on their key was under way\n", name,
		operations, len(keys), concurrent)
	return 0
}

// Operations that began while another one on the same key was under way: without any, a history proves little.
func overlaps(history []porcupine.Operation) int {
	sort.Slice(history, func(i, j int) bool { return history[i].Call < history[j].Call })
	count, latest := 0, int64(-1)
	for _, op := range history {
		if op.Call < latest {
			count++
		}
		if op.Return > latest {
			latest = op.Return
		}
	}
	return count
}

func main() {
	worst := 0
	for _, name := range os.Args[1:] {
		if status := check(name); status > worst {
			worst = status
		}
	}
	os.Exit(worst)
}
