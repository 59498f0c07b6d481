//! The command line.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "fastpath",
    version,
    about = "Tells whether AMD GPU direct storage can work on a Linux host, why not, and what to do",
    long_about = "Tells whether hipFile's fastpath, PCIe peer-to-peer DMA between NVMe drives and AMD GPUs, can work \
                  on a Linux host, why not, and what to do about it.\n\nIt reads files only: it changes nothing, starts \
                  no program and opens no network connection, and needs no privilege. Only `survey` and `inspect` of a URL \
                  use the network. Only `cp`, `bench` and `verify` use a GPU, and `stats` starts the program it is given.",
    after_help = "Exit codes of check, inspect and matrix --target: 0 supported, 1 unsupported or blocked, 2 unknown or \
                  an error. Of verify: 0 equal, 1 not, 2 nothing proven. Of the other commands: 0 done, 2 error.",
    disable_help_subcommand = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Judge this host, another root, or a snapshot
    Check(CheckArgs),
    /// List the installed kernels: their verdicts, which one runs, which one boots next
    Kernels(KernelsArgs),
    /// Judge the kernels inside files and URLs: configurations, packages, kernel and disk images
    Inspect(InspectArgs),
    /// Write the facts the verdict uses into an archive, for `check --snapshot` elsewhere
    Snapshot(SnapshotArgs),
    /// Show how GPUs, drives and network adapters are connected over PCIe
    Topology(TopologyArgs),
    /// Show the support matrix of distributions' default kernels
    Matrix(MatrixArgs),
    /// Rebuild the support matrix from distributions' own repositories
    Survey(SurveyArgs),
    /// Explain a finding, reason, advisory or remedy by its id
    Explain(ExplainArgs),
    /// Answer in the form of AMD's ais-check; also under the name `ais-check`
    AisCheck(AisCheckArgs),
    /// Measure fastpath and fallback beside the least that each could do
    Bench(BenchArgs),
    /// Copy a file through a GPU's memory; also under the name `aiscp`
    Cp(CpArgs),
    /// Show which way a program's I/O went, and why not the fastpath; also under the name `ais-stats`
    Stats(StatsArgs),
    /// Write patterns through each backend, read them back through the other, and compare every byte
    Verify(VerifyArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// What the name `aiscp` stands for
    #[command(hide = true)]
    Aiscp(AiscpArgs),
    /// What the name `ais-stats` stands for
    #[command(hide = true, disable_help_flag = true)]
    AisStats(AisStatsArgs),
    /// Load one HIP runtime and say what it offers; what `check --load-runtime` starts
    #[command(hide = true)]
    AskRuntime(AskRuntimeArgs),
}

/// Where a host is read from.
#[derive(Debug, Clone, ClapArgs)]
pub struct RootArgs {
    /// Read the host in this directory instead of `/`; links resolve inside it
    #[arg(long, value_name = "DIR", conflicts_with = "snapshot")]
    pub root: Option<PathBuf>,
    /// Read the host from an archive made by `fastpath snapshot`
    #[arg(long, value_name = "FILE")]
    pub snapshot: Option<PathBuf>,
}

/// What is known besides the host's own facts.
#[derive(Debug, Clone, ClapArgs)]
pub struct KnowledgeArgs {
    /// Add advisories and remedies from a TOML file; it can never remove a block
    #[arg(long, value_name = "FILE")]
    pub knowledge: Vec<PathBuf>,
}

/// `fastpath check`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  fastpath check\n  fastpath check --format json | jq .kernel.verdict\n  \
                  fastpath check --path /data/model.safetensors --gpu 0000:03:00.0\n  fastpath check -- 4711\n  \
                  fastpath check --root /mnt/image\n  fastpath check --kernel 6.8.0-138-generic\n  \
                  fastpath check --snapshot customer.tar.zst\n  if fastpath check -q; then echo supported; fi"
)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct CheckArgs {
    /// Where to read.
    #[command(flatten)]
    pub root: RootArgs,
    /// Judge this kernel instead of the running one
    #[arg(long, value_name = "RELEASE")]
    pub kernel: Option<String>,
    /// Judge only these layers
    #[arg(long, value_enum, value_name = "LAYER", value_delimiter = ',')]
    pub layer: Vec<LayerArg>,
    /// Ask about this GPU only, by PCI address (0000:03:00.0)
    #[arg(long, value_name = "ADDRESS")]
    pub gpu: Option<String>,
    /// Ask whether hipFile takes the fastpath for this file or directory, and which rule stops it
    #[arg(long, value_name = "FILE")]
    pub path: Option<PathBuf>,
    /// Open a temporary file for direct I/O on each file system that may do; it has no name and is gone at once
    #[arg(long, conflicts_with_all = ["root", "snapshot", "pid"])]
    pub probe: bool,
    /// Load the HIP runtimes and ask them, each in a process of its own, instead of reading their files
    #[arg(long, conflicts_with_all = ["root", "snapshot"])]
    pub load_runtime: bool,
    /// What is known.
    #[command(flatten)]
    pub knowledge: KnowledgeArgs,
    /// How to print the report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Print nothing; the exit code tells
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print also what holds and where was looked in vain; the verdict stays the same
    #[arg(short, long)]
    pub verbose: bool,
    /// Ask about a running process: its libraries, its environment, its mounts, its open files
    #[arg(last = true, value_name = "PID", conflicts_with_all = ["kernel", "snapshot", "path"])]
    pub pid: Option<u32>,
}

/// `fastpath kernels`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  fastpath kernels\n  fastpath kernels --root /mnt/image --format json"
)]
pub struct KernelsArgs {
    /// Where to read.
    #[command(flatten)]
    pub root: RootArgs,
    /// What is known.
    #[command(flatten)]
    pub knowledge: KnowledgeArgs,
    /// How to print the list
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
}

/// `fastpath inspect`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  fastpath inspect /boot/config-6.8.0-142-generic\n  fastpath inspect --format json *.config.gz\n  \
                  fastpath inspect linux-image-amd64.deb kernel-core.rpm disk.qcow2 /boot/vmlinuz\n  \
                  zcat config.gz | fastpath inspect -\n\n\
                  Exit code of one input with several kernels: 2 if any is unknown, else 1 if any is unsupported or blocked, \
                  else 0. Of several inputs: 1 if any gives 1, else 2 if any gives 2 or failed, else 0."
)]
pub struct InspectArgs {
    /// Configurations, packages, kernel images, archives, disk images, as files or URLs; `-` is standard input
    #[arg(required = true, value_name = "FILE|URL")]
    pub files: Vec<PathBuf>,
    /// What is known.
    #[command(flatten)]
    pub knowledge: KnowledgeArgs,
    /// How to print the answers; JSON is one object per line
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Stop at the first configuration found in each input
    #[arg(long)]
    pub first: bool,
    /// Print nothing; the exit code tells
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print also the companion options
    #[arg(short, long)]
    pub verbose: bool,
}

/// `fastpath snapshot`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "The archive holds what a check of all layers reads: kernel configurations; what kallsyms and the boot loader's \
                  files say about kernels; os-release; the PCI devices with ids, BARs and ACS of their configuration space; what AMD's \
                  driver and KFD say; where HIP libraries are; the mount table with mount points and block devices; of the kernel command \
                  line the parameters about PCI and the IOMMU. It holds no host name, no serial numbers, no machine ids, no names of servers, \
                  and no other kernel parameters. Mount points and names of folders are kept as they are: look at them if they name \
                  people.\n\n\
                  Examples:\n  fastpath snapshot\n  fastpath snapshot -o customer.tar.zst\n  fastpath check --snapshot customer.tar.zst"
)]
pub struct SnapshotArgs {
    /// The archive to write; `-` is standard output [default: fastpath-snapshot.tar.zst]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the archive if there is one
    #[arg(short, long)]
    pub force: bool,
    /// Read the host in this directory instead of `/`
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

/// `fastpath topology`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Marks: ACS redirection sends peer traffic up to the host bridge; a link that runs narrower or slower than it could \
                  is marked.\n\nExamples:\n  fastpath topology\n  sudo fastpath topology --format svg > topology.svg"
)]
pub struct TopologyArgs {
    /// Where to read.
    #[command(flatten)]
    pub root: RootArgs,
    /// What is known.
    #[command(flatten)]
    pub knowledge: KnowledgeArgs,
    /// How to show it
    #[arg(long, value_enum, default_value_t = TopologyFormat::Text)]
    pub format: TopologyFormat,
}

/// The form of the topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TopologyFormat {
    /// A tree of lines
    Text,
    /// A picture
    Svg,
}

/// `fastpath matrix`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  fastpath matrix\n  fastpath matrix --target rhel-9.8\n  fastpath matrix --format rst > table.rst"
)]
pub struct MatrixArgs {
    /// Show one target in full, with its advisories and remedies; the exit code tells its verdict
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// Show the published rows only, whatever a survey has found
    #[arg(long)]
    pub published: bool,
    /// The survey's data set [default: `$XDG_DATA_HOME/fastpath/survey.jsonl`]
    #[arg(long, value_name = "FILE", conflicts_with = "published")]
    pub data: Option<PathBuf>,
    /// Show other kernels of a target's distribution that have the option
    #[arg(long, value_name = "TARGET", conflicts_with = "target")]
    pub alternatives: Option<String>,
    /// What is known.
    #[command(flatten)]
    pub knowledge: KnowledgeArgs,
    /// How to print the matrix
    #[arg(long, value_enum, default_value_t = MatrixFormat::Text)]
    pub format: MatrixFormat,
    /// Print nothing; with `--target` the exit code tells
    #[arg(short, long)]
    pub quiet: bool,
}

/// `fastpath survey`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Indexes are verified against keys pinned by fingerprint; the keys themselves come from the machine's \
                  keyrings (Debian's packages debian-archive-keyring, ubuntu-keyring and distribution-gpg-keys hold them).\n\n\
                  Examples:\n  fastpath survey debian-12 debian-13 debian-13-backports\n  fastpath survey --flavour hwe,backports\n  \
                  fastpath survey --diff published\n  fastpath survey --mirror rhel-9.8=file:///srv/rocky/9/BaseOS/x86_64/os/ rhel-9.8"
)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct SurveyArgs {
    /// Targets by published name or catalogue id; all of the catalogue if none is given
    #[arg(value_name = "TARGET")]
    pub targets: Vec<String>,
    /// List the targets of the catalogue, and read nothing
    #[arg(long, conflicts_with_all = ["targets", "diff", "all_kernels"])]
    pub list: bool,
    /// Only targets of these flavours: default, hwe, backports, cloud, rt, lowlatency, uek, rhck
    #[arg(long, value_name = "FLAVOUR", value_delimiter = ',')]
    pub flavour: Vec<String>,
    /// Read every kernel in the repositories, not only the default one
    #[arg(long)]
    pub all_kernels: bool,
    /// Show what changed between two runs, the last two if none is named, or from one to the newest row of each target; `published` stands for
    /// the published rows, `newest` for the newest ones
    #[arg(long, value_name = "RUN", num_args = 0..=2, conflicts_with_all = ["targets", "all_kernels", "flavour", "keyring", "mirror", "allow_stale", "verify", "offline", "ca_file"])]
    pub diff: Option<Vec<String>>,
    /// The data set to add to [default: `$XDG_DATA_HOME/fastpath/survey.jsonl`]
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// A keyring file or folder besides the system's; may be given several times
    #[arg(long, value_name = "PATH")]
    pub keyring: Vec<PathBuf>,
    /// Read a target from this repository; may be given several times, also for one target
    #[arg(long, value_name = "ID=URL")]
    pub mirror: Vec<String>,
    /// Accept indexes and keys past their end; their rows are marked `stale`
    #[arg(long)]
    pub allow_stale: bool,
    /// Read packages whole and check their digests
    #[arg(long)]
    pub verify: bool,
    /// Answer from the cache, without network
    #[arg(long)]
    pub offline: bool,
    /// Certificates to trust instead of the system's
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// What is known.
    #[command(flatten)]
    pub knowledge: KnowledgeArgs,
    /// How to print the rows; JSON is one object per line
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Print nothing; the exit code tells
    #[arg(short, long)]
    pub quiet: bool,
}

/// `fastpath explain`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  fastpath explain option-not-set\n  fastpath explain el9_8-memory-corruption\n  fastpath explain"
)]
pub struct ExplainArgs {
    /// The id; without one, all ids are listed
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// What is known.
    #[command(flatten)]
    pub knowledge: KnowledgeArgs,
}

/// `fastpath ais-check`, and the program under the name `ais-check`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exit codes: 0 if the four answers are True and the overall verdict of `fastpath check` is supported, else 1; 2 for an \
                  error of usage. What AMD's tool would answer otherwise is told on standard error.\n\nA link to the program with the \
                  name `ais-check` takes its place:\n  ln -s $(command -v fastpath) /usr/local/bin/ais-check\n\nExamples:\n  fastpath ais-check\n  \
                  fastpath ais-check -v"
)]
pub struct AisCheckArgs {
    /// Print nothing but warnings; the exit code tells
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print also the HIP libraries that were found
    #[arg(short, long)]
    pub verbose: bool,
}

/// `fastpath ask-runtime`.
#[derive(Debug, ClapArgs)]
pub struct AskRuntimeArgs {
    /// The library
    pub library: String,
}

/// What the commands that move bytes have in common.
#[derive(Debug, Clone, ClapArgs)]
pub struct RuntimeArgs {
    /// Read kernel and mounts in this directory instead of `/`; what the running kernel calls itself counts all the same
    #[arg(long, value_name = "DIR", hide = true)]
    pub root: Option<PathBuf>,
}

/// `fastpath bench`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "The floor is one pread and one device copy, or one copy and one pwrite, through one reused aligned pinned buffer; the bare \
                  call is hipAmdFileRead or hipAmdFileWrite and nothing else. Each pair takes turns in one run; what is shown are medians. \
                  The temporary file has no name, so that it is gone however the program ends.\n\n\
                  Examples:\n  fastpath bench /data\n  fastpath bench /data --direct --threads 1,4,16\n  \
                  fastpath bench /data --format svg > bench.svg"
)]
pub struct BenchArgs {
    /// Where the temporary file is made
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Bytes of a request, powers of two from 4K to 1G [default: 4K to 64M in steps of four]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = parse_block)]
    pub block: Vec<usize>,
    /// Threads that share one file, 1 to 256
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "1,8", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Vec<u16>,
    /// Open the file with `O_DIRECT`
    #[arg(long, help = "Open the file with O_DIRECT: measure the drive instead of the page cache")]
    pub direct: bool,
    /// Few rounds and sizes, to see that it works
    #[arg(long)]
    pub quick: bool,
    /// How to show it
    #[arg(long, value_enum, default_value_t = BenchFormat::Text)]
    pub format: BenchFormat,
    /// What it has in common with others.
    #[command(flatten)]
    pub runtime: RuntimeArgs,
}

/// `fastpath cp`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "The copy gets the source's mode, and its holes stay holes. It appears under its name when it is whole and on the drive: \
                  until then, and if the copy fails or a signal ends it, what was there stays as it was. `--in-place` writes into the \
                  file that is there, which keeps its links, owner and mode and may be half a copy if the program is stopped; into \
                  a block device, which must not be in use, there is no other way. What the source grows by meanwhile is not copied, \
                  and that is said; a source that shrinks is an error.\n\n\
                  Under the name `aiscp` it takes two arguments and nothing else, is silent, and ends with 0 or 1. It then writes in \
                  place, as AMD's does, where the folder takes no new file:\n  \
                  ln -s $(command -v fastpath) /usr/local/bin/aiscp\n\nExamples:\n  fastpath cp /data/model.safetensors /scratch/\n  \
                  fastpath cp --in-place /data/image.raw /dev/nvme1n1p2\n  fastpath stats -- fastpath cp -q /data/a /data/b"
)]
pub struct CpArgs {
    /// A regular file or a block device
    #[arg(value_name = "SRC")]
    pub source: PathBuf,
    /// A file, or a folder in which the copy gets the source's name
    #[arg(value_name = "DST")]
    pub destination: PathBuf,
    /// Write into the file that is there
    #[arg(long)]
    pub in_place: bool,
    /// Do not say which way the bytes went
    #[arg(short, long)]
    pub quiet: bool,
    /// What it has in common with others.
    #[command(flatten)]
    pub runtime: RuntimeArgs,
}

/// The program under the name `aiscp`.
#[derive(Debug, ClapArgs)]
#[command(
    override_usage = "aiscp <SOURCE> <DEST>",
    after_help = "Example:\n  aiscp /data/model.safetensors /scratch/model.safetensors"
)]
pub struct AiscpArgs {
    /// A regular file or a block device
    #[arg(value_name = "SOURCE")]
    pub source: PathBuf,
    /// The copy
    #[arg(value_name = "DEST")]
    pub destination: PathBuf,
    /// What it has in common with others.
    #[command(flatten)]
    pub runtime: RuntimeArgs,
}

/// `fastpath stats`.
#[derive(Debug, ClapArgs)]
#[command(
    override_usage = "fastpath stats [OPTIONS] <PID>\n       fastpath stats [OPTIONS] -- <PROGRAM> [ARGS]...",
    after_help = "Of a program it starts, it shows the statistics at the end, passes signals on to it, and ends with its exit status, or \
                  128 and the number of the signal that ended it. A program that forks workers before its first I/O has none of its \
                  own: ask for a worker. AMD's library is read too, but counts no reasons. Only the same user and root may look.\n\n\
                  Under the name `ais-stats` it takes the arguments of AMD's, prints what that prints and no reasons, and ends with \
                  0 or 1, but for a program that failed, whose exit status it passes on:\n  \
                  ln -s $(command -v fastpath) /usr/local/bin/ais-stats\n\n\
                  Examples:\n  fastpath stats 4711\n  fastpath stats --wait 4711\n  fastpath stats --format json -- ./train"
)]
pub struct StatsArgs {
    /// A process that runs
    #[arg(value_name = "PID", required_unless_present = "program", conflicts_with = "program", value_parser = parse_pid)]
    pub pid: Option<u32>,
    /// Wait for the process to end, and show its statistics then
    #[arg(short, long, conflicts_with = "program")]
    pub wait: bool,
    /// How to print them
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// A program to start, with its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    pub program: Vec<std::ffi::OsString>,
}

/// The program under the name `ais-stats`.
#[derive(Debug, ClapArgs)]
pub struct AisStatsArgs {
    /// `PROGRAM [ARGS]`, or `-p PID [-i]`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    pub words: Vec<std::ffi::OsString>,
}

/// `fastpath verify`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exit codes: 0 if all bytes are equal, 1 at the first that is not, 2 if nothing is proven: an error, or the fastpath was not \
                  taken. It is the only proof that a fastpath does not corrupt, on this host with this drive and GPU. The \
                  GPU's memory holds other bytes before each read, and those beside the read must stay; what is read back by pread was \
                  thrown out of the page cache before. The temporary file has no name, so that it is gone however the program ends.\n\n\
                  Examples:\n  fastpath verify /data\n  fastpath verify --fallback-only /tmp\n  fastpath verify --seed 1780000000 /data"
)]
pub struct VerifyArgs {
    /// Where the temporary file is made, 24 MiB without a name
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Also on a kernel whose fastpath an advisory blocks
    #[arg(long)]
    pub force: bool,
    /// Leave the fastpath out
    #[arg(long, conflicts_with = "force")]
    pub fallback_only: bool,
    /// The patterns' seed, to repeat a run [default: the time]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Print nothing but warnings; the exit code tells
    #[arg(short, long)]
    pub quiet: bool,
    /// What it has in common with others.
    #[command(flatten)]
    pub runtime: RuntimeArgs,
}

/// The form of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchFormat {
    /// Tables
    Text,
    /// For programs
    Json,
    /// A plot
    Svg,
}

fn parse_pid(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| "expected the number of a process; a program stands behind `--`".to_owned())
}

fn parse_block(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" | "k" | "KiB" => 10,
        "M" | "m" | "MiB" => 20,
        "G" | "g" | "GiB" => 30,
        other => return Err(format!("expected K, M or G after the number, found `{other}`")),
    };
    let number: usize = digits.parse().map_err(|_| "expected a number".to_owned())?;
    number
        .checked_mul(1 << shift)
        .filter(|size| size.is_power_of_two() && (4096..=1 << 30).contains(size))
        .ok_or_else(|| "expected a power of two from 4K to 1G".to_owned())
}

/// `fastpath completions`.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Example:\n  fastpath completions bash > ~/.local/share/bash-completion/completions/fastpath"
)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// The form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// The form of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MatrixFormat {
    /// For people
    Text,
    /// reStructuredText, as published
    Rst,
    /// Markdown
    Md,
    /// Comma-separated values
    Csv,
    /// One self-contained page
    Html,
    /// For programs
    Json,
}

/// A layer that can be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LayerArg {
    /// The kernel's configuration, and what is known about the kernel
    Kernel,
    /// AMD's GPU driver, and what it says of each GPU
    Driver,
    /// The HIP runtime and hipFile's library
    Runtime,
    /// The way over PCIe between each GPU and each NVMe drive
    Path,
    /// Mounted file systems and the block devices below them
    Volume,
}
