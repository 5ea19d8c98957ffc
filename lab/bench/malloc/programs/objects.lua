-- SPDX-License-Identifier: MIT
-- Tables, closures, strings and trees; the argument is how much. Lua's collector frees them in
-- sweeps, and each table and string is a block of its own.
local scale = tonumber(arg[1])

local function scaled(count)
    return math.max(1, math.floor(count * scale))
end

local state = 1
local function random(bound) -- Park and Miller's, so that every run is the same
    state = state * 48271 % 2147483647
    return state % bound
end

local function tree(depth)
    if depth == 0 then return {} end
    return {tree(depth - 1), tree(depth - 1)}
end

local function count(node)
    if not node[1] then return 1 end
    return 1 + count(node[1]) + count(node[2])
end

local kept = tree(14)
local nodes = 0
for _ = 1, scaled(120) do nodes = nodes + count(tree(10)) end
print(nodes, count(kept))

local set = {}
for i = 1, scaled(300000) do
    set["key" .. random(40000)] = {i, name = "value " .. random(1000)}
    if i % 3 == 0 then set["key" .. random(40000)] = nil end
end
local left = 0
for _ in pairs(set) do left = left + 1 end
print(left)

local parts = {}
for i = 1, scaled(100000) do
    parts[#parts + 1] = string.format("%d:%s", i, string.rep("s", random(30)))
    if #parts == 200 then parts = {table.concat(parts, ","):sub(1, 500)} end
end
print(#table.concat(parts))

local counters = {}
for i = 1, scaled(100000) do
    local n = random(100)
    counters[1 + (i - 1) % 5000] = function() n = n + 1 return n end
end
local total = 0
for i = 1, #counters do total = total + counters[i]() end
print(total)
