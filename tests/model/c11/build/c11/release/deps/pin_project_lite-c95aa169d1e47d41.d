/work/main/tests/model/c11/build/c11/release/deps/pin_project_lite-c95aa169d1e47d41.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/pin-project-lite-0.2.17/src/lib.rs

/work/main/tests/model/c11/build/c11/release/deps/libpin_project_lite-c95aa169d1e47d41.rlib: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/pin-project-lite-0.2.17/src/lib.rs

/work/main/tests/model/c11/build/c11/release/deps/libpin_project_lite-c95aa169d1e47d41.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/pin-project-lite-0.2.17/src/lib.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/pin-project-lite-0.2.17/src/lib.rs:
