/work/main/tests/model/c11/build/c11/release/deps/scoped_tls-80836fecbfed6a5a.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/scoped-tls-1.0.1/src/lib.rs

/work/main/tests/model/c11/build/c11/release/deps/libscoped_tls-80836fecbfed6a5a.rlib: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/scoped-tls-1.0.1/src/lib.rs

/work/main/tests/model/c11/build/c11/release/deps/libscoped_tls-80836fecbfed6a5a.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/scoped-tls-1.0.1/src/lib.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/scoped-tls-1.0.1/src/lib.rs:
