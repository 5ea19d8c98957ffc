# SPDX-License-Identifier: MIT
# Objects, hashes, strings, arrays and blocks; the argument is how much.
scale = ARGV[0].to_f
Account = Struct.new(:number, :owner, :entries)
rng = Random.new(1)
accounts = {}
(200_000 * scale).to_i.times do |i|
  number = rng.rand(10_000)
  account = accounts[number] ||= Account.new(number, "name #{number} #{'x' * (number % 60)}", [])
  account.entries << ["entry #{i} of account #{number}, text", i]
  accounts.delete(rng.rand(10_000)) if i % 5 == 0
end
puts accounts.values.sum { |account| account.entries.sum { |text, i| text.length + i % 7 } }
words = Hash.new(0)
text = Array.new((100_000 * scale).to_i) { "word#{rng.rand(5000)}" }.join(' ')
text.scan(/\w+/) { |word| words[word] += 1 }
p words.sort_by { |word, count| [-count, word] }.first(3)
lines = Array.new((60_000 * scale).to_i) { |i| (1..rng.rand(8)).map { |j| i * j }.join(',') }
puts lines.map { |line| line.gsub(/\d+/) { |n| "<#{n}>" } }.sum(&:length)
