// SPDX-License-Identifier: MIT
//! Torture on the library's allocator: plain values are deferred to it.
mod common;

prudence::global_allocator!();

#[test]
fn values_are_replaced_under_readers() {
    common::replace_under_readers();
}

#[test]
fn plain_values_are_replaced_under_readers() {
    common::replace_plain_under_readers();
}

#[test]
fn a_stack_loses_nothing() {
    common::push_and_pop();
}
