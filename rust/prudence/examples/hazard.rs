// SPDX-License-Identifier: MIT
//! The code of docs/how-to/rust.md about hazard pointers: a report takes long over one table of prices,
//! while a writer replaces the table again and again. Only the table that the report names waits.

use prudence::hazard::{self, AtomicBox, HazardPointer};
use std::thread;

prudence::global_allocator!();

struct Prices {
    version: usize,
    of: Vec<u64>,
}

static PRICES: AtomicBox<Prices> = AtomicBox::empty();

fn price(hazard: &mut HazardPointer, article: usize) -> Option<u64> {
    hazard.protect(&PRICES)?.of.get(article).copied()
}

fn raise_prices(hazard: &mut HazardPointer) {
    loop {
        let current = hazard.protect(&PRICES);
        let next = current.map(|prices| Prices {
            version: prices.version + 1,
            of: prices.of.iter().map(|price| price + 1).collect(),
        });
        if PRICES.compare_exchange(current, next).is_ok() {
            return; // the table before is dropped when no hazard pointer names it
        }
    }
}

fn main() {
    PRICES.store(Prices { version: 0, of: vec![10, 20, 30] });
    let mut report = HazardPointer::new();
    let table = report.protect(&PRICES).unwrap();
    thread::spawn(|| (0..100_000).for_each(|_| raise_prices(&mut HazardPointer::new())))
        .join()
        .unwrap();

    let waiting = hazard::reclaim();
    println!("the report reads version {}; tables that wait for it: {waiting}", table.version);
    let now = price(&mut HazardPointer::new(), 1).unwrap();
    println!("an article cost {} and costs {now}", table.of[1]);
    drop(report);
    assert_eq!(hazard::reclaim(), 0);
}
