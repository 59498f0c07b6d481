//! `cargo xtask simulation DIR`: the simulated HIP runtime where loaders, compilers and build tools look for the real one.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::Context as _;

use crate::dist;

#[path = "../../crates/hip-sim/src/layout.rs"]
#[allow(dead_code, unreachable_pub, reason = "tests use the rest")]
mod layout;

/// What programs are linked with has HIP's names; the file keeps its own, so that nobody takes it for HIP.
const LIBRARY: &str = "libhip_sim.so";

/// Builds the simulation with a profile of cargo's and lays it out in `root`.
pub(crate) fn run(repository: &Path, root: &Path, profile: &str) -> anyhow::Result<bool> {
    let built = dist::build(repository, "fastpath-hip-sim", LIBRARY, profile)?;
    install(&repository.join("crates/hip-sim"), root, Path::new(&built))?;
    println!("{}", root.display());
    Ok(true)
}

fn install(package: &Path, root: &Path, library: &Path) -> anyhow::Result<()> {
    let lib = root.join("lib");
    copy(library, &lib.join(LIBRARY))?;
    layout::lay_out_of(&lib, Path::new(LIBRARY))?;
    copy(&package.join("cmake/hip-config.cmake"), &lib.join("cmake/hip/hip-config.cmake"))?;
    copy_all(&package.join("include"), &root.join("include"))
}

fn copy_all(from: &Path, to: &Path) -> anyhow::Result<()> {
    for entry in from.read_dir().with_context(|| from.display().to_string())? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_all(&entry.path(), &target)?;
        } else {
            copy(&entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Makes the file anew: a program may run with the one that is there.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let make = || {
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        match fs::remove_file(to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::copy(from, to).map(drop)
    };
    make().with_context(|| to.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulation_is_found_by_hips_names_and_may_be_laid_out_again() {
        let folder = tempfile::tempdir().unwrap();
        let built = folder.path().join("built");
        fs::write(&built, "first").unwrap();
        let root = folder.path().join("sim");
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/hip-sim");
        install(&package, &root, &built).unwrap();
        fs::write(&built, "second").unwrap();
        install(&package, &root, &built).unwrap();
        for name in layout::NAMES {
            assert_eq!(
                fs::read_to_string(root.join("lib").join(name)).unwrap(),
                "second",
                "{name}"
            );
        }
        for name in ["include/hip/hip_runtime_api.h", "lib/cmake/hip/hip-config.cmake"] {
            assert!(root.join(name).is_file(), "{name}");
        }
        if !crate::ci::installed("cmake") {
            println!("skipped, because cmake is not installed");
            return;
        }
        let lists = "cmake_minimum_required(VERSION 3.16)\nproject(user C)\nfind_package(hip REQUIRED CONFIG)\n\
            get_target_property(where hip::amdhip64 INTERFACE_INCLUDE_DIRECTORIES)\n\
            if(NOT TARGET hip::host OR NOT EXISTS ${where}/hip/hip_runtime_api.h)\n\
            message(FATAL_ERROR ${where})\nendif()\n";
        fs::write(folder.path().join("CMakeLists.txt"), lists).unwrap();
        let output = std::process::Command::new("cmake")
            .arg("-S")
            .arg(folder.path())
            .arg("-B")
            .arg(folder.path().join("build"))
            .arg(format!("-DCMAKE_PREFIX_PATH={}", root.display()))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
