# SPDX-License-Identifier: MIT
# ctest: long (python is much like it)
"""perl: hashes, strings, sorting, regular expressions and closures; forked children compute the same."""

from support import Program

SCRIPT = r"""
use strict; use warnings;
my $rounds = shift;
sub work {
    my ($seed) = @_;
    my (%count, @lists, $text);
    for my $i (1 .. 30000) {
        $seed = ($seed * 1103515245 + 12345) & 0x7fffffff;
        my $key = 'k' . ($seed % 5000);
        $count{$key}++;
        push @{$lists[$seed % 100]}, $key x ($seed % 9);
        delete $count{'k' . ($seed % 4999)} if $i % 3 == 0;
        $text .= chr(97 + $seed % 26);
        $text = substr($text, 5000) if length($text) > 20000;
    }
    my @subs = map { my $n = $_; sub { $n * $_[0] } } 1 .. 5000;
    my $sum = 0;
    $sum += $_->(3) for @subs;
    my $words = join ' ', sort map { join ',', @{$_ // []} } @lists;
    (my $changed = $words) =~ s/k(\d+)/<$1>/g;
    (my $back = $changed) =~ s/<(\d+)>/k$1/g;
    die "substitution changed the text\n" if $back ne $words;
    my @parts = split /,/, $words, -1;
    die "join and split differ\n" if join(',', @parts) ne $words;
    return join ':', $sum, length $words, unpack('%32C*', $words), scalar(keys %count), $text =~ tr/a//;
}
my $first = work(1);
for my $n (1 .. $rounds) {
    my $child = open(my $pipe, '-|') // die "fork: $!";
    if (!$child) { print work(1); exit 0 }
    my $answer = do { local $/; <$pipe> };
    close $pipe or die "child failed: $?\n";
    die "child: $answer, parent: $first\n" if $answer ne $first or work(1) ne $first;
}
print "$first\n";
"""


class Perl(Program):
    packages = ("perl",)
    wanted = ("perl",)
    least = 100000

    def test_script(self):
        script = self.script("script.pl", SCRIPT)
        rounds = self.pick(8, 100)
        ours = self.run_program("perl", script, rounds)
        plain = self.run_plain("perl", script, 0)
        self.assertEqual(ours.stdout, plain.stdout)
        self.note(f"{2 * rounds + 1} rounds alike, as without us")
