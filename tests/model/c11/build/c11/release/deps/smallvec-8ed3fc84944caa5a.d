/work/main/tests/model/c11/build/c11/release/deps/smallvec-8ed3fc84944caa5a.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/smallvec-1.16.5/src/lib.rs

/work/main/tests/model/c11/build/c11/release/deps/libsmallvec-8ed3fc84944caa5a.rlib: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/smallvec-1.16.5/src/lib.rs

/work/main/tests/model/c11/build/c11/release/deps/libsmallvec-8ed3fc84944caa5a.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/smallvec-1.16.5/src/lib.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/smallvec-1.16.5/src/lib.rs:
