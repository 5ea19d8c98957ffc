/work/main/tests/model/c11/build/c11/release/deps/matchers-40e499d289978564.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/matchers-0.1.0/src/lib.rs

/work/main/tests/model/c11/build/c11/release/deps/libmatchers-40e499d289978564.rlib: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/matchers-0.1.0/src/lib.rs

/work/main/tests/model/c11/build/c11/release/deps/libmatchers-40e499d289978564.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/matchers-0.1.0/src/lib.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/matchers-0.1.0/src/lib.rs:
