//! `fastpath check`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use anyhow::Context as _;
use fastpath_host::pci::{Address, Role};
use fastpath_host::process::{AsSeenBy, ProcessFacts};
use fastpath_host::runtime;
use fastpath_host::volume::{self, Located};
use fastpath_host::{Asked, DirTree, Facts, Scope, Tree, gather_layers};
use fastpath_knowledge::{Knowledge, Release};
use fastpath_verdict::process::ProcessVerdict;
use fastpath_verdict::{Check, Layer, Question};

use crate::args::{CheckArgs, Format, LayerArg};
use crate::error::Hinted;
use crate::{output, root};

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<u8> {
    let asked = match &args.kernel {
        None => Asked::Running,
        Some(text) => Asked::Release(Release::new(text).ok_or_else(|| Hinted {
            message: format!("`{text}` is no kernel release"),
            hint: "give it as `uname -r` prints it, for example 6.8.0-138-generic".to_owned(),
        })?),
    };
    let gpu = args.gpu.as_deref().map(address).transpose()?;
    let knowledge = root::knowledge(&args.knowledge)?;
    let root = root::open(&args.root)?;
    let layers = layers(args);
    let scope = Scope {
        driver: layers.contains(&Layer::Driver) || layers.contains(&Layer::Volume),
        runtime: layers.contains(&Layer::Runtime),
        path: layers.contains(&Layer::Path),
        volume: layers.contains(&Layer::Volume),
    };
    // Only this process's own host is seen with its environment.
    let is_own = args.root.root.is_none() && args.root.snapshot.is_none();
    let variables = environment(is_own);
    let mut facts = gather_layers(root.tree(), &asked, scope, &variables);
    if let Some(runtime) = facts.runtime.as_mut().filter(|_| args.load_runtime) {
        super::ask_runtime::ask(runtime);
    }
    let process = args.pid.map(|pid| process(pid, &mut facts)).transpose()?;
    if args.probe
        && let Some(volumes) = &mut facts.volume
    {
        let judged = fastpath_verdict::volume::judge(volumes, None, &knowledge);
        super::probe::probe(volumes, &judged);
    }
    if let Some(gpu) = &gpu {
        require_gpu(gpu, &facts)?;
    }
    let located = match &args.path {
        Some(path) => Some(locate(path, args, root.tree(), &facts)?),
        None => None,
    };
    let question = Question { layers: &layers, gpu: gpu.as_ref(), file: located.as_ref() };
    let mut check = fastpath_verdict::check_for(&facts, &knowledge, &question);
    if let Some((process, files)) = process {
        check.about_process(judge_process(process, files, &check, &knowledge));
    }
    aim(&mut check, args);
    if !args.quiet {
        if let Some(note) = root.note() {
            output::note(&note);
        }
        output::data(&match args.format {
            Format::Text => fastpath_report::check_text(&check, args.verbose, output::width()),
            Format::Json => fastpath_report::check_json(&check),
        })?;
    }
    Ok(check.verdict.exit_code())
}

/// A process of this machine and its files; what depends on who looks is read as the process sees it.
fn process(pid: u32, facts: &mut Facts) -> anyhow::Result<(ProcessFacts, Vec<Located>)> {
    let host = DirTree::open(Path::new("/"))?;
    let mut process = fastpath_host::process::read(&host, pid)
        .ok_or_else(|| anyhow::anyhow!("there is no process {pid}, or it may not be looked at"))?;
    let link = format!("/proc/{pid}/root");
    anyhow::ensure!(
        Path::new(&link).symlink_metadata().is_ok(),
        "there is no process {pid} any more"
    );
    let root = DirTree::open(Path::new(&link)).map_err(|error| {
        let what = "the files of a process are seen by root and by the user who runs it";
        anyhow::anyhow!("{what}: {}: {}", error.path, error.reason)
    })?;
    let seen = AsSeenBy::new(&host, &root, pid);
    let volumes = volume::read(&seen);
    let files = process.files.iter().map(|file| volume::locate(&seen, &volumes, &file.path));
    let files = files.collect();
    facts.volume = Some(volumes);
    // One that is not this project's decides: it knows fewer words.
    let ours = process.hipfile.iter().map(|path| runtime::is_ours(&seen, path));
    let ours: Option<Vec<bool>> = ours.collect();
    process.ours = ours.filter(|ours| !ours.is_empty()).map(|ours| !ours.contains(&false));
    if facts.runtime.is_some() {
        facts.runtime = Some(runtime::read(&seen, &process.variables));
    }
    Ok((process, files))
}

fn judge_process(
    process: ProcessFacts,
    files: Vec<Located>,
    check: &Check<'_>,
    knowledge: &Knowledge,
) -> ProcessVerdict {
    let build = check.driver.as_ref().and_then(|driver| driver.build);
    let judged = process.files.iter().cloned().zip(files).filter_map(|(file, located)| {
        let volumes = check.facts.volume.as_ref()?;
        Some((file, fastpath_verdict::volume::judge_file(&located, volumes, build, knowledge)))
    });
    let judged = judged.collect();
    fastpath_verdict::process::judge(process, judged)
}

/// The layers to judge. A kernel that does not run has no driver loaded and no path: alone it is judged, unless more is asked.
fn layers(args: &CheckArgs) -> Vec<Layer> {
    let all = [Layer::Kernel, Layer::Driver, Layer::Runtime, Layer::Path, Layer::Volume];
    if args.layer.is_empty() {
        return if args.kernel.is_some() { vec![Layer::Kernel] } else { all.to_vec() };
    }
    let word = |layer: &LayerArg| match layer {
        LayerArg::Kernel => Layer::Kernel,
        LayerArg::Driver => Layer::Driver,
        LayerArg::Runtime => Layer::Runtime,
        LayerArg::Path => Layer::Path,
        LayerArg::Volume => Layer::Volume,
    };
    let asked: Vec<Layer> = args.layer.iter().map(word).collect();
    // In their own order, each once.
    all.into_iter().filter(|layer| asked.contains(layer)).collect()
}

/// This process's environment if its own host is read, else none. What is not text names no library that could be loaded.
pub(super) fn environment(is_own: bool) -> BTreeMap<String, String> {
    if !is_own {
        return BTreeMap::new();
    }
    let variables = std::env::vars_os();
    variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// A PCI address, with or without its domain.
fn address(text: &str) -> Result<Address, Hinted> {
    let lower = text.to_ascii_lowercase();
    let whole = if lower.matches(':').count() == 1 { format!("0000:{lower}") } else { lower };
    Address::new(&whole).ok_or_else(|| Hinted {
        message: format!("`{text}` is no PCI address"),
        hint: "give it as `lspci -D` prints it, for example 0000:03:00.0".to_owned(),
    })
}

fn require_gpu(gpu: &Address, facts: &Facts) -> Result<(), Hinted> {
    let Some(pci) = &facts.pci else { return Ok(()) };
    let gpus: Vec<&str> = pci.with_role(Role::Gpu).map(|gpu| gpu.address.as_str()).collect();
    if gpus.is_empty() || gpus.contains(&gpu.as_str()) {
        return Ok(());
    }
    Err(Hinted {
        message: format!("{gpu} is no AMD GPU of this host"),
        hint: format!("there are {}", gpus.join(", ")),
    })
}

/// The file that is asked about, and the mount it is on. A relative path is relative to where the program runs.
fn locate(
    path: &Path,
    args: &CheckArgs,
    tree: &dyn Tree,
    facts: &Facts,
) -> anyhow::Result<Located> {
    let Some(volumes) = &facts.volume else {
        anyhow::bail!("`--path` asks about a volume, and `--layer` leaves volumes out");
    };
    let is_own = args.root.root.is_none() && args.root.snapshot.is_none();
    let path = if is_own { std::path::absolute(path)? } else { path.to_owned() };
    let text = path.to_str().filter(|text| text.starts_with('/')).ok_or_else(|| Hinted {
        message: format!("`{}` is no absolute path in UTF-8", path.display()),
        hint: "name a file as the host that is read names it, from `/`".to_owned(),
    })?;
    if is_own {
        // A name that is mistyped would be judged by the folder it is not in.
        std::fs::metadata(&path).with_context(|| text.to_owned())?;
    }
    Ok(volume::locate(tree, volumes, text))
}

/// Makes the advice to run the program again ask the question that was asked, of the host that was asked about: pasted
/// as it is, it would judge another kernel or the inspector's own host.
fn aim(check: &mut Check<'_>, args: &CheckArgs) {
    let hints = check.findings.iter_mut().filter_map(|finding| finding.hint.as_mut());
    for command in hints.flat_map(|hint| hint.commands.iter_mut()) {
        if !command.contains("fastpath check") || command.contains("--root") {
            continue;
        }
        let as_root = command.starts_with("sudo fastpath");
        if let Some(kernel) = args.kernel.as_ref().filter(|_| !command.contains("--kernel")) {
            command.push_str(" --kernel ");
            command.push_str(&quoted(OsStr::new(kernel)));
        }
        match (&args.root.root, &args.root.snapshot) {
            (Some(root), _) => {
                command.push_str(" --root ");
                command.push_str(&quoted(root.as_os_str()));
            }
            // What could not be read when the snapshot was taken cannot be read from it.
            (None, Some(_)) if as_root => "sudo fastpath snapshot --force".clone_into(command),
            (None, Some(snapshot)) => {
                command.push_str(" --snapshot ");
                command.push_str(&quoted(snapshot.as_os_str()));
            }
            (None, None) => {}
        }
    }
}

/// A word for a shell.
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
