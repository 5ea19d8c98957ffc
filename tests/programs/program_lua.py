# SPDX-License-Identifier: MIT
"""Lua: tables, strings and coroutines under both garbage collectors; every object is a malloc."""

from support import Program

SCRIPT = r"""
local rounds = tonumber(arg[1])
local function tree(depth)
    if depth == 0 then return {} end
    return {tree(depth - 1), tree(depth - 1), name = "node" .. depth}
end
local function count(t) return t[1] and 1 + count(t[1]) + count(t[2]) or 1 end
local function work()
    local total, seed, kept = 0, 1, setmetatable({}, {__mode = "v"})
    local strings = {}
    for i = 1, 20000 do
        seed = (seed * 1103515245 + 12345) % 2147483648
        local s = string.rep(tostring(seed % 1000), seed % 50)
        strings[seed % 997] = (strings[seed % 997] or "") .. s:sub(1, 7)
        kept[i] = {s}
        total = total + #s
    end
    for depth = 4, 13 do assert(count(tree(depth)) == 2 ^ (depth + 1) - 1) end
    local makers = {}
    for i = 1, 500 do
        makers[i] = coroutine.wrap(function() for j = 1, 20 do coroutine.yield(i * j) end end)
    end
    for j = 1, 20 do for i = 1, 500 do assert(makers[i]() == i * j) total = total + i * j end end
    local list = {}
    for _, s in pairs(strings) do list[#list + 1] = s end
    table.sort(list)
    for i = 2, #list do assert(list[i - 1] <= list[i]) end
    return total .. ":" .. #table.concat(list)
end
local first = work()
for i = 1, rounds do
    collectgarbage(i % 2 == 0 and "incremental" or "generational")
    assert(work() == first)
end
print(first)
"""


class Lua(Program):
    packages = ("lua5.4",)
    wanted = ("lua5.4",)
    least = 1000000

    def test_script(self):
        script = self.script("script.lua", SCRIPT)
        rounds = self.pick(10, 400)
        ours = self.run_program("lua5.4", script, rounds)
        self.assertEqual(ours.stdout, self.run_plain("lua5.4", script, 0).stdout)
        self.note(f"{rounds + 1} rounds alike, as without us")
