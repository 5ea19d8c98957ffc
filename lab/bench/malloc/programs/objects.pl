# SPDX-License-Identifier: MIT
# Objects, hashes of lists, strings, closures and sorting; the argument is how much.
use strict;
use warnings;
my $scale = shift;
my $state = 1;
sub random { $state = $state * 48271 % 2147483647; return $state % $_[0] }
my %accounts;
for my $i (1 .. 150000 * $scale) {
    my $name = "name " . random(8000);
    my $account = $accounts{$name} //= { entries => [], owner => $name };
    push @{ $account->{entries} }, [$i, "entry $i" . 'x' x random(30)];
    delete $accounts{ "name " . random(8000) } if $i % 5 == 0;
}
my $sum = 0;
for my $name (sort keys %accounts) { $sum += length $_->[1] for @{ $accounts{$name}{entries} } }
print "$sum\n";
my $text = '';
for my $i (1 .. 60000 * $scale) {
    $text .= join ',', map { $_ * $i } 1 .. random(8);
    (my $changed = substr $text, -60) =~ s/(\d+)/<$1>/g;
    $text = $changed if length $text > 5000;
}
print length($text), "\n";
my @subs = map { my $n = $_; sub { $n += $_[0] } } 1 .. 40000 * $scale;
my $total = 0;
$total += $_->(3) for @subs;
print "$total\n";
