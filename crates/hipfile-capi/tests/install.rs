//! The installed library as build tools find it.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "they are tests")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Install, assert_passes, is_there};

fn include(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../hip-sim").join(path)
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/parameters.c")
}

fn run_there(what: &str, program: &Path, install: &Install) {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", install.lib()).env("HIPSIM_QUIET", "1");
    assert_passes(what, &mut command);
}

#[test]
fn links_lead_to_the_library() {
    let install = Install::new();
    let link = |name| std::fs::read_link(install.lib().join(name)).expect("a link");
    assert_eq!(link("libhipfile.so"), Path::new("libhipfile.so.0"));
    assert_eq!(link("libhipfile.so.0"), Path::new("libhipfile.so.0.5.0"));
    assert!(install.lib().join("libhipfile.so.0.5.0").is_file());
    // Installing over it takes the place of what is there.
    common::layout::install(install.root(), &common::layout::built().expect("the library"))
        .expect("installed again");
}

#[test]
fn pkg_config() {
    if !is_there("pkg-config") {
        println!("skipped, because pkg-config is not installed");
        return;
    }
    let install = Install::new();
    let ask = |what: &[&str]| {
        let mut command = Command::new("pkg-config");
        command.env("PKG_CONFIG_PATH", install.lib().join("pkgconfig"));
        let output = command.args(what).arg("hipfile").output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
    };
    assert_eq!(ask(&["--modversion"]), "0.5.0");
    let program = install.root().join("program");
    let flags = ask(&["--cflags", "--libs"]);
    let output = Command::new("gcc")
        .args(["-std=gnu11", "-D_GNU_SOURCE", "-I"])
        .arg(include("include"))
        .arg("-I")
        .arg(include("tests/c"))
        .arg(source())
        .arg("-o")
        .arg(&program)
        .args(flags.split_whitespace())
        .arg("-lamdhip64")
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{flags}: {}", String::from_utf8_lossy(&output.stderr));
    run_there("pkg-config", &program, &install);
}

#[test]
fn cmake() {
    if !is_there("cmake") {
        println!("skipped, because cmake is not installed");
        return;
    }
    let install = Install::new();
    let project = tempfile::tempdir().expect("a folder");
    let lists = "cmake_minimum_required(VERSION 3.16)\n\
        project(user C)\n\
        find_package(hipfile 0.2 REQUIRED)\n\
        add_executable(user ${SOURCE})\n\
        target_compile_definitions(user PRIVATE _GNU_SOURCE)\n\
        target_include_directories(user PRIVATE ${HIP_INCLUDE} ${CHECK_INCLUDE})\n\
        target_link_libraries(user PRIVATE hip::hipfile ${HIP_LIBRARY})\n";
    std::fs::write(project.path().join("CMakeLists.txt"), lists).expect("written");
    let define = |name: &str, value: &Path| format!("-D{name}={}", value.display());
    let build = project.path().join("build");
    let configure = Command::new("cmake")
        .arg("-S")
        .arg(project.path())
        .arg("-B")
        .arg(&build)
        .arg(define("CMAKE_PREFIX_PATH", install.root()))
        .arg(define("SOURCE", &source()))
        .arg(define("HIP_INCLUDE", &include("include")))
        .arg(define("CHECK_INCLUDE", &include("tests/c")))
        .arg(define("HIP_LIBRARY", &install.lib().join("libamdhip64.so")))
        .output()
        .expect("it starts");
    assert!(configure.status.success(), "{}", String::from_utf8_lossy(&configure.stderr));
    let output = Command::new("cmake").arg("--build").arg(&build).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    run_there("cmake", &build.join("user"), &install);
    // A version that this one does not stand for.
    std::fs::write(
        project.path().join("CMakeLists.txt"),
        lists.replace("hipfile 0.2", "hipfile 0.6"),
    )
    .expect("written");
    let output = Command::new("cmake").arg(&build).output().expect("it starts");
    assert!(!output.status.success(), "0.5.0 is not 0.6");
}
