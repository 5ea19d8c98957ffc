// SPDX-License-Identifier: MIT
//! Finds the library. `PRUDENCE_LIB_DIR` names the folder of `libprudence.so`; otherwise pkg-config
//! knows it. Nothing is built or fetched here.
use std::env;
use std::process::{exit, Command};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for name in ["PRUDENCE_LIB_DIR", "PKG_CONFIG", "PKG_CONFIG_PATH", "DOCS_RS"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    if env::var_os("DOCS_RS").is_some() {
        return; // docs.rs links nothing
    }
    if let Some(folder) = env::var_os("PRUDENCE_LIB_DIR") {
        println!("cargo:rustc-link-search=native={}", folder.to_string_lossy());
        println!("cargo:rustc-link-lib=prudence");
        println!("cargo:libdir={}", folder.to_string_lossy());
        return;
    }
    match pkg_config() {
        Ok(flags) => flags.split_whitespace().for_each(pass_on),
        Err(why) => {
            eprintln!(
                "prudence-sys: pkg-config does not find the library 'prudence' ({why}). Install \
                 Prudence 0.1 or later, or set PRUDENCE_LIB_DIR to the folder of libprudence.so."
            );
            exit(1);
        }
    }
}

fn pkg_config() -> Result<String, String> {
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".to_string());
    let output = Command::new(&program)
        .args(["--libs", "prudence >= 0.1"])
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_string())
    }
}

fn pass_on(flag: &str) {
    if let Some(folder) = flag.strip_prefix("-L") {
        println!("cargo:rustc-link-search=native={folder}");
        println!("cargo:libdir={folder}");
    } else if let Some(library) = flag.strip_prefix("-l") {
        println!("cargo:rustc-link-lib={library}");
    }
}
