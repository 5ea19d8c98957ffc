<?php
// SPDX-License-Identifier: MIT
// Objects, arrays and strings; the argument is how much. Run with USE_ZEND_ALLOC=0, which sends each to malloc.
class Account
{
    public array $entries = [];
    public function __construct(public int $number, public string $owner) {}
}
$scale = (float)$argv[1];
mt_srand(1);
$accounts = [];
for ($i = 0; $i < 300000 * $scale; $i++) {
    $number = mt_rand(0, 9999);
    $accounts[$number] ??= new Account($number, "name $number");
    $accounts[$number]->entries[] = ["entry $i of $number", $i];
    if ($i % 5 == 0) unset($accounts[mt_rand(0, 9999)]);
}
$sum = 0;
foreach ($accounts as $account) foreach ($account->entries as [$text, $i]) $sum += strlen($text);
echo $sum, "\n";
$total = 0;
for ($i = 0; $i < 100000 * $scale; $i++) {
    $parts = explode(',', implode(',', range(1, mt_rand(2, 12))));
    $total += strlen(preg_replace('/\d+/', '<$0>', json_encode($parts)));
}
echo $total, "\n";
