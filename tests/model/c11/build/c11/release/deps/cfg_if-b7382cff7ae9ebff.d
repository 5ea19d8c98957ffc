/work/main/tests/model/c11/build/c11/release/deps/cfg_if-b7382cff7ae9ebff.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/cfg-if-1.0.5/src/lib.rs

/work/main/tests/model/c11/build/c11/release/deps/libcfg_if-b7382cff7ae9ebff.rlib: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/cfg-if-1.0.5/src/lib.rs

/work/main/tests/model/c11/build/c11/release/deps/libcfg_if-b7382cff7ae9ebff.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/cfg-if-1.0.5/src/lib.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/cfg-if-1.0.5/src/lib.rs:
