// SPDX-License-Identifier: MIT
//! Torture on the system's allocator: everything ends by callbacks.
mod common;

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
