/work/main/tests/model/c11/build/c11/release/deps/c11-83e863a1e92e61ea.d: src/main.rs src/grace_period.rs src/machine.rs src/parking.rs src/per_cpu.rs

/work/main/tests/model/c11/build/c11/release/deps/c11-83e863a1e92e61ea: src/main.rs src/grace_period.rs src/machine.rs src/parking.rs src/per_cpu.rs

src/main.rs:
src/grace_period.rs:
src/machine.rs:
src/parking.rs:
src/per_cpu.rs:
