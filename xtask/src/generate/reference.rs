//! What the reference says beyond the definition of the command line: exit codes, environment variables, files.

use std::fmt::Write as _;

use clap::CommandFactory as _;
use fastpath::args::Args;

/// What a command's exit code speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It judges one thing.
    Judges,
    /// It judges one or several inputs.
    JudgesSeveral,
    /// It judges only with `--target`.
    JudgesTarget,
    /// It keeps the codes of the tool it stands in for.
    StandsIn,
    /// It passes on the code of a program that it starts.
    Watches,
    /// It compares bytes.
    Compares,
    /// It compares only with `--diff`.
    Surveys,
    /// It does something.
    Does,
}

impl Kind {
    /// Of the command with this name; `None` for a name that is not classified yet.
    pub(super) fn of(command: &str) -> Option<Self> {
        Some(match command {
            "check" => Self::Judges,
            "ais-check" => Self::StandsIn,
            "verify" => Self::Compares,
            "stats" => Self::Watches,
            "inspect" => Self::JudgesSeveral,
            "matrix" => Self::JudgesTarget,
            "survey" => Self::Surveys,
            "kernels" | "snapshot" | "topology" | "explain" | "bench" | "cp" | "completions" => {
                Self::Does
            }
            _ => return None,
        })
    }

    /// The codes and their meanings, and a closing remark.
    pub(super) const fn exit_status(
        self,
    ) -> (&'static [(&'static str, &'static str)], &'static str) {
        const JUDGES: &[(&str, &str)] = &[
            ("0", "The verdict is supported."),
            ("1", "The verdict is unsupported or blocked."),
            ("2", "The verdict is unknown, or there was an error, also one of usage."),
        ];
        const DOES: &[(&str, &str)] =
            &[("0", "It is done."), ("2", "There was an error, also one of usage.")];
        match self {
            Self::Judges => (JUDGES, ""),
            Self::JudgesSeveral => (
                JUDGES,
                "Of one input with several kernels: 2 if any is unknown, else 1 if any is unsupported or blocked, else 0. Of \
                 several inputs: 1 if any gives 1, else 2 if any gives 2 or failed, else 0.",
            ),
            Self::JudgesTarget => {
                (JUDGES, "Without `--target` it judges nothing: 0 if it is done, 2 after an error.")
            }
            Self::Surveys => {
                (DOES, "2 also if any row failed. With `--diff`: 1 if a value flipped, else 0.")
            }
            Self::Watches => (DOES, "Of a program that it starts it passes the exit status on."),
            Self::Compares => (
                &[
                    ("0", "All bytes are equal."),
                    ("1", "A byte differs."),
                    (
                        "2",
                        "Nothing is proven: an error, also one of usage, or the fastpath was not taken.",
                    ),
                ],
                "",
            ),
            Self::StandsIn => (
                &[
                    ("0", "All four answers are True, and the overall verdict is supported."),
                    ("1", "They are not."),
                    ("2", "There was an error, also one of usage."),
                ],
                "",
            ),
            Self::Does => (DOES, ""),
        }
    }
}

/// An environment variable.
pub(super) struct Variable {
    pub(super) name: &'static str,
    pub(super) effect: &'static str,
    pub(super) scope: Scope,
}

/// Which commands read a variable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    All,
    /// Those that take knowledge.
    Knowledge,
    /// Those that move bytes.
    Moves,
    /// Both.
    KnowledgeAndMoves,
}

pub(super) const VARIABLES: [Variable; 13] = [
    Variable {
        name: "HIPFILE_KNOWLEDGE",
        effect: "A TOML file that adds advisories and remedies, read after those in `/etc/fastpath/knowledge.d` and \
                 before those of `--knowledge`. It can never remove a block.",
        scope: Scope::KnowledgeAndMoves,
    },
    Variable {
        name: "NO_COLOR",
        effect: "If set and not empty, no colour is used. Off a terminal there is none anyway.",
        scope: Scope::All,
    },
    Variable { name: "CLICOLOR", effect: "If set to `0`, no colour is used.", scope: Scope::All },
    Variable {
        name: "CLICOLOR_FORCE",
        effect: "If set and not empty, colour is used off a terminal too, unless `NO_COLOR` forbids it.",
        scope: Scope::All,
    },
    Variable {
        name: "ROCM_PATH",
        effect: "Where ROCm is, for `bench`, `cp` and `verify`, if the loader does not find `libamdhip64.so` by itself; `/opt/rocm` if not \
                 set.",
        scope: Scope::Moves,
    },
    Variable {
        name: "HIPFILE_LOG",
        effect: "`warn`, `info` or `debug`: `bench`, `cp` and `verify` say on standard error what the library says of its ways. Nothing if \
                 not set.",
        scope: Scope::Moves,
    },
    Variable {
        name: "HIPFILE_FORCE_COMPAT_MODE",
        effect: "`true`: nothing takes the fastpath, in `cp` as in programs that use the library; `verify` then proves nothing.",
        scope: Scope::Moves,
    },
    Variable {
        name: "HIPFILE_ALLOW_COMPAT_MODE",
        effect: "`false`: nothing takes the fallback, in `cp` as in programs that use the library: what cannot go directly fails.",
        scope: Scope::Moves,
    },
    Variable {
        name: "HIPFILE_UNSUPPORTED_FILE_SYSTEMS",
        effect: "`true`: `bench`, `cp` and `verify` try the fastpath on other file systems than xfs and ext4 too.",
        scope: Scope::Moves,
    },
    Variable {
        name: "HIPFILE_ACCEPT_ADVISORY",
        effect: "Ids of blocking advisories, with commas, whose risk is taken: data may be corrupted. `verify` asks for `--force` instead.",
        scope: Scope::Moves,
    },
    Variable {
        name: "XDG_DATA_HOME",
        effect: "Where `survey` keeps its data set and what it read of kernels that remedies lead to, in `fastpath/`; `~/.local/share` \
                 if not set.",
        scope: Scope::Knowledge,
    },
    Variable {
        name: "XDG_CACHE_HOME",
        effect: "Where `survey` keeps indexes and what it read of packages, in `fastpath/`; `~/.cache` if not set.",
        scope: Scope::Knowledge,
    },
    Variable {
        name: "http_proxy, https_proxy, all_proxy, no_proxy",
        effect: "How `survey` and `inspect` of a URL reach the network, in lower or upper case; the machine's apt and dnf configuration goes \
                 first in `survey`.",
        scope: Scope::Knowledge,
    },
];

/// Files the program reads on the host, by the command's name: path and what it says. R is a kernel's release.
pub(super) fn host_files(command: &str) -> &'static [(&'static str, &'static str)] {
    const KERNEL: &[(&str, &str)] = &[
        ("/proc/sys/kernel/osrelease, /proc/version", "Which kernel runs."),
        ("/proc/config.gz", "The configuration of the running kernel, out of itself."),
        ("/proc/kallsyms", "The symbols of the running kernel."),
        ("/boot/config-R", "The configuration that was installed with kernel R."),
        (
            "/lib/modules/R/config, /usr/lib/modules/R/config",
            "The same, in the directory of its modules.",
        ),
        (
            "/usr/lib/kernel/config-R, /lib/kernel/config-R, /usr/boot/config-R, /usr/lib/ostree-boot, \
             /etc/kernels/kernel-config-*-R",
            "The same, where only some distributions put it.",
        ),
        (
            "/lib/modules/R/build/.config, /usr/src/linux-headers-R/.config, /usr/src/linux-R/.config",
            "The configuration of a build tree or of installed headers.",
        ),
        (
            "/usr/src/linux/.config",
            "Shown, but never deciding: it does not say for which kernel it is.",
        ),
        ("/boot, /lib/modules, /usr/lib/modules", "Which kernels are installed."),
        (
            "/boot/grub, /boot/grub2, /boot/loader, /efi/loader, /boot/efi, /etc/default/grub",
            "Which kernel boots next.",
        ),
        ("/etc/os-release, /usr/lib/os-release", "Which distribution it is."),
    ];
    const LAYERS: &[(&str, &str)] = &[
        (
            "/sys/bus/pci/devices, /sys/devices",
            "Which GPUs, drives and bridges there are, and how they are connected.",
        ),
        ("/sys/kernel/iommu_groups", "Which IOMMU groups translate."),
        (
            "/proc/cpuinfo, /proc/cmdline",
            "The processor's family; parameters about PCI and the IOMMU.",
        ),
        (
            "/sys/module/amdgpu, /sys/class/kfd, /var/lib/dkms/amdgpu",
            "AMD's driver, and what it says of each GPU.",
        ),
        (
            "/opt/rocm*, /etc/ld.so.cache, LD_LIBRARY_PATH, ROCM_PATH, HIP_PATH",
            "Where a program finds the HIP runtime.",
        ),
        (
            "/proc/self/mountinfo, /proc/fs/ext4, /sys/dev/block",
            "Mounted file systems and the block devices below them.",
        ),
    ];
    static ALL: std::sync::LazyLock<Vec<(&str, &str)>> =
        std::sync::LazyLock::new(|| [KERNEL, LAYERS].concat());
    match command {
        "check" | "snapshot" => &ALL,
        "kernels" => KERNEL,
        "topology" => &LAYERS[..3],
        "survey" => &[
            (
                "~/.local/share/fastpath/survey.jsonl",
                "The data set: one JSON object per line, only added to.",
            ),
            (
                "~/.local/share/fastpath/remedies.toml",
                "What was read of kernels that remedies lead to; read by `check`.",
            ),
            (
                "~/.cache/fastpath",
                "Indexes, and what was read of packages, for the next run and for `--offline`.",
            ),
            (
                "/etc/apt, /etc/yum.repos.d, /etc/dnf",
                "Where the machine's own distribution is asked.",
            ),
            (
                "/usr/share/keyrings, /etc/apt/keyrings, /etc/apt/trusted.gpg.d, /usr/share/distribution-gpg-keys, /etc/pki/rpm-gpg",
                "Keys, of which the pinned ones count.",
            ),
        ],
        _ => &[],
    }
}

/// The directory of added knowledge.
pub(super) const KNOWLEDGE_FILES: (&str, &str) = (
    "/etc/fastpath/knowledge.d/*.toml",
    "Advisories and remedies added to the built-in ones, in order of name. Always of the machine the program runs on, \
     whatever host is asked about.",
);

fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut out = format!("| {} |\n|{}\n", head.join(" | "), " --- |".repeat(N));
    for row in rows {
        let cells = row.map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out
}

/// Every command with its one line.
pub(super) fn commands_table() -> String {
    let command = Args::command();
    let rows = command.get_subcommands().filter(|command| !command.is_hide_set()).map(|command| {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        [format!("`fastpath {}`", command.get_name()), about]
    });
    table(["Command", "What it does"], rows)
}

/// The exit codes of all commands.
pub(super) fn exit_codes_table() -> String {
    let command = Args::command();
    let of = |wanted: &[Kind]| {
        let names = command.get_subcommands().map(clap::Command::get_name);
        names
            .filter(|name| Kind::of(name).is_some_and(|kind| wanted.contains(&kind)))
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let judges = of(&[Kind::Judges, Kind::JudgesSeveral]);
    let other = of(&[Kind::Does]);
    let row = |code: &str, judges: &str, other: &str| [code, judges, other].map(str::to_owned);
    table(
        ["Code", &format!("{judges}, `matrix --target`"), &format!("{other}, `matrix`")],
        [
            row("0", "supported", "done"),
            row("1", "unsupported or blocked", "never"),
            row("2", "unknown, or an error", "an error"),
        ],
    )
}

/// The environment variables.
pub(super) fn environment_table() -> String {
    let rows = VARIABLES.iter().map(|it| [format!("`{}`", it.name), it.effect.to_owned()]);
    table(["Variable", "Effect"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_classified() {
        let program = Args::command();
        for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
            assert!(Kind::of(command.get_name()).is_some(), "{}", command.get_name());
        }
    }
}
