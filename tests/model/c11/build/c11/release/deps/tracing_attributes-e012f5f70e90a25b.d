/work/main/tests/model/c11/build/c11/release/deps/tracing_attributes-e012f5f70e90a25b.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tracing-attributes-0.1.28/src/lib.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tracing-attributes-0.1.28/src/attr.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tracing-attributes-0.1.28/src/expand.rs

/work/main/tests/model/c11/build/c11/release/deps/libtracing_attributes-e012f5f70e90a25b.so: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tracing-attributes-0.1.28/src/lib.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tracing-attributes-0.1.28/src/attr.rs /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tracing-attributes-0.1.28/src/expand.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tracing-attributes-0.1.28/src/lib.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tracing-attributes-0.1.28/src/attr.rs:
/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tracing-attributes-0.1.28/src/expand.rs:
