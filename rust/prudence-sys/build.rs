// SPDX-License-Identifier: MIT
//! Finds the library, or builds it.
//!
//! `PRUDENCE_LIB_DIR` names the folder of `libprudence.so`; otherwise pkg-config knows it. Where
//! neither does, and where `PRUDENCE_VENDORED` is set, this builds the C of the folder `c`, which the
//! package has, and links it into the program. Nothing is fetched, and no crate is needed.
//!
//! Cargo shows programs that it runs only libraries below the target folder. So there are links to the
//! library. Build scripts of packages that need this one find its folder in `DEP_PRUDENCE_LIBDIR`.
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{exit, Command};
use std::sync::Mutex;
use std::thread;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for name in ["PRUDENCE_LIB_DIR", "PRUDENCE_VENDORED", "PKG_CONFIG", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rerun-if-env-changed=DOCS_RS");
    if env::var_os("DOCS_RS").is_some() {
        return; // docs.rs links nothing
    }
    let system = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if system != "linux" {
        eprintln!(
            "prudence-sys: Prudence works on Linux alone, and the program is built for '{system}'."
        );
        exit(1);
    }
    if env::var_os("PRUDENCE_VENDORED").is_none() {
        if let Some(folder) = env::var_os("PRUDENCE_LIB_DIR") {
            println!("cargo:rustc-link-lib=prudence");
            return search(Path::new(&folder));
        }
        if let Ok(flags) = pkg_config() {
            return flags.split_whitespace().for_each(pass_on);
        }
    }
    if let Err(why) = build() {
        eprintln!(
            "prudence-sys: pkg-config does not find the library 'prudence', and its C is not built: \
             {why}. Install Prudence 0.3 or later, or set PRUDENCE_LIB_DIR to the folder of \
             libprudence.so."
        );
        exit(1);
    }
}

fn pkg_config() -> Result<String, String> {
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".to_string());
    run(Command::new(program).args(["--libs", "prudence >= 0.3"]))
}

fn pass_on(flag: &str) {
    if let Some(folder) = flag.strip_prefix("-L") {
        search(Path::new(folder));
    } else if let Some(library) = flag.strip_prefix("-l") {
        println!("cargo:rustc-link-lib={library}");
    }
}

/// Lets the linker and `cargo run` find the library in a folder.
fn search(folder: &Path) {
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:libdir={}", folder.display());
    if let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.to_string_lossy().starts_with("libprudence.so.") {
                let _ = fs::remove_file(out.join(&name));
                #[allow(deprecated)] // because the other function is not there on all systems
                let _ = fs::soft_link(entry.path(), out.join(&name)); // without it there are other ways
            }
        }
        println!("cargo:rustc-link-search=native={}", out.display());
    }
}

/// Runs a program, and returns its output or the error.
fn run(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// Builds `libprudence.a`: one object, in which all names that are not public are local, so that none
/// of them can meet one of the program's.
fn build() -> Result<(), String> {
    let folder = |name: &str| env::var(name).map(PathBuf::from).map_err(|_| format!("no {name}"));
    let (c, out) = (folder("CARGO_MANIFEST_DIR")?.join("c"), folder("OUT_DIR")?);
    println!("cargo:rerun-if-changed={}", c.join("src").display());
    println!("cargo:rerun-if-changed={}", c.join("include").display());
    if env::var("HOST") != env::var("TARGET") && compiler_words().is_none() {
        return Err("for another machine CC_<target> or CC must name its compiler".to_string());
    }
    let mut sources = Vec::new();
    find_sources(&c.join("src"), &mut sources).map_err(|error| format!("folder c/src: {error}"))?;
    sources.sort();
    let objects = compile_all(&c, &out, &sources)?;
    let joined = out.join("joined.o");
    run(compiler().args(["-r", "-nostdlib", "-o"]).arg(&joined).args(&objects))?;
    let object = out.join("prudence.o");
    run(tool("objcopy")?.arg("--localize-hidden").args([&joined, &object]))?;
    let library = out.join("libprudence.a");
    let _ = fs::remove_file(&library);
    run(tool("ar")?.arg("crs").args([&library, &object]))?;
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=prudence");
    Ok(())
}

/// The first of `CC_<target>` (also with `_` for `-`), `TARGET_CC` and `CC`, as the crate cc has it. A
/// compiler may have arguments, as "ccache gcc".
fn compiler_words() -> Option<String> {
    let target = env::var("TARGET").unwrap_or_default();
    let names = [
        format!("CC_{target}"),
        format!("CC_{}", target.replace('-', "_")),
        "TARGET_CC".to_string(),
        "CC".to_string(),
    ];
    names.iter().for_each(|name| println!("cargo:rerun-if-env-changed={name}"));
    names.iter().find_map(|name| env::var(name).ok().filter(|words| !words.trim().is_empty()))
}

fn compiler() -> Command {
    let words = compiler_words().unwrap_or_else(|| "cc".to_string());
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("cc"));
    command.args(words);
    command
}

/// A tool for the compiler's machine, which may be another than this one.
fn tool(name: &str) -> Result<Command, String> {
    run(compiler().arg(format!("-print-prog-name={name}"))).map(|path| Command::new(path.trim()))
}

/// All C, except the files for the kernel or for the core alone.
fn find_sources(folder: &Path, sources: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if !path.ends_with("kernel") && !path.ends_with("alone") {
                find_sources(&path, sources)?;
            }
        } else if path.extension().map_or(false, |extension| extension == "c") {
            sources.push(path);
        }
    }
    Ok(())
}

/// Compiles on as many threads as cargo allows.
fn compile_all(c: &Path, out: &Path, sources: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let jobs = env::var("NUM_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(1);
    let (next, first_error) = (Mutex::new(0), Mutex::new(None));
    let object = |number: usize| out.join(format!("{number}.o"));
    let work = || loop {
        let number = {
            let mut next = next.lock().unwrap();
            *next += 1;
            *next - 1
        };
        if number >= sources.len() || first_error.lock().unwrap().is_some() {
            return;
        }
        if let Err(error) = compile(c, &sources[number], &object(number)) {
            *first_error.lock().unwrap() = Some(error);
        }
    };
    thread::scope(|scope| (0..jobs).for_each(|_| drop(scope.spawn(work))));
    match first_error.into_inner().unwrap() {
        None => Ok((0..sources.len()).map(object).collect()),
        Some(error) => Err(error),
    }
}

/// Compiles as CMakeLists.txt does.
fn compile(c: &Path, source: &Path, object: &Path) -> Result<(), String> {
    let mut command = compiler();
    command.args(["-std=gnu11", "-O2", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-pthread"]);
    if env::var_os("CARGO_FEATURE_DYNAMIC_TLS").is_some() {
        command.arg("-Dtls_model(model)="); // the C names the model of each variable
    } else {
        command.arg("-ftls-model=initial-exec");
    }
    for folder in ["include", "src", "src/core", "src/core/os/posix", "src/core/gp/user"] {
        command.arg("-I").arg(c.join(folder));
    }
    run(command.arg("-c").arg(source).arg("-o").arg(object)).map(drop)
}
