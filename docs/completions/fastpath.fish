# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_fastpath_global_optspecs
    string join \n h/help V/version
end

function __fish_fastpath_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_fastpath_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_fastpath_using_subcommand
    set -l cmd (__fish_fastpath_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c fastpath -n "__fish_fastpath_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fastpath -n "__fish_fastpath_needs_command" -s V -l version -d 'Print version'
complete -c fastpath -n "__fish_fastpath_needs_command" -f -a "check" -d 'Judge this host, another root, or a snapshot'
complete -c fastpath -n "__fish_fastpath_needs_command" -f -a "kernels" -d 'List the installed kernels: their verdicts, which one runs, which one boots next'
complete -c fastpath -n "__fish_fastpath_needs_command" -f -a "inspect" -d 'Judge the kernels inside files and URLs: configurations, packages, kernel and disk images'
complete -c fastpath -n "__fish_fastpath_needs_command" -f -a "snapshot" -d 'Write the facts the verdict uses into an archive, for `check --snapshot` elsewhere'
complete -c fastpath -n "__fish_fastpath_needs_command" -f -a "topology" -d 'Show how GPUs, drives and network adapters are connected over PCIe'
complete -c fastpath -n "__fish_fastpath_needs_command" -f -a "matrix" -d 'Show the support matrix of distributions\' default kernels'
complete -c fastpath -n "__fish_fastpath_needs_command" -f -a "survey" -d 'Rebuild the support matrix from distributions\' own repositories'
complete -c fastpath -n "__fish_fastpath_needs_command" -f -a "explain" -d 'Explain a finding, reason, advisory or remedy by its id'
complete -c fastpath -n "__fish_fastpath_needs_command" -f -a "ais-check" -d 'Answer in the form of AMD\'s ais-check; also under the name `ais-check`'
complete -c fastpath -n "__fish_fastpath_needs_command" -f -a "bench" -d 'Measure fastpath and fallback beside the least that each could do'
complete -c fastpath -n "__fish_fastpath_needs_command" -f -a "cp" -d 'Copy a file through a GPU\'s memory; also under the name `aiscp`'
complete -c fastpath -n "__fish_fastpath_needs_command" -f -a "stats" -d 'Show which way a program\'s I/O went, and why not the fastpath; also under the name `ais-stats`'
complete -c fastpath -n "__fish_fastpath_needs_command" -f -a "verify" -d 'Write patterns through each backend, read them back through the other, and compare every byte'
complete -c fastpath -n "__fish_fastpath_needs_command" -f -a "completions" -d 'Print a completion script for a shell'
complete -c fastpath -n "__fish_fastpath_needs_command" -f -a "aiscp" -d 'What the name `aiscp` stands for'
complete -c fastpath -n "__fish_fastpath_needs_command" -f -a "ais-stats" -d 'What the name `ais-stats` stands for'
complete -c fastpath -n "__fish_fastpath_needs_command" -f -a "ask-runtime" -d 'Load one HIP runtime and say what it offers; what `check --load-runtime` starts'
complete -c fastpath -n "__fish_fastpath_using_subcommand check" -l root -d 'Read the host in this directory instead of `/`; links resolve inside it' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand check" -l snapshot -d 'Read the host from an archive made by `fastpath snapshot`' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand check" -l kernel -d 'Judge this kernel instead of the running one' -r
complete -c fastpath -n "__fish_fastpath_using_subcommand check" -l layer -d 'Judge only these layers' -r -f -a "kernel\t'The kernel\'s configuration, and what is known about the kernel'
driver\t'AMD\'s GPU driver, and what it says of each GPU'
runtime\t'The HIP runtime and hipFile\'s library'
path\t'The way over PCIe between each GPU and each NVMe drive'
volume\t'Mounted file systems and the block devices below them'"
complete -c fastpath -n "__fish_fastpath_using_subcommand check" -l gpu -d 'Ask about this GPU only, by PCI address (0000:03:00.0)' -r
complete -c fastpath -n "__fish_fastpath_using_subcommand check" -l path -d 'Ask whether hipFile takes the fastpath for this file or directory, and which rule stops it' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand check" -l knowledge -d 'Add advisories and remedies from a TOML file; it can never remove a block' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand check" -l format -d 'How to print the report' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c fastpath -n "__fish_fastpath_using_subcommand check" -l probe -d 'Open a temporary file for direct I/O on each file system that may do; it has no name and is gone at once'
complete -c fastpath -n "__fish_fastpath_using_subcommand check" -l load-runtime -d 'Load the HIP runtimes and ask them, each in a process of its own, instead of reading their files'
complete -c fastpath -n "__fish_fastpath_using_subcommand check" -s q -l quiet -d 'Print nothing; the exit code tells'
complete -c fastpath -n "__fish_fastpath_using_subcommand check" -s v -l verbose -d 'Print also what holds and where was looked in vain; the verdict stays the same'
complete -c fastpath -n "__fish_fastpath_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fastpath -n "__fish_fastpath_using_subcommand kernels" -l root -d 'Read the host in this directory instead of `/`; links resolve inside it' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand kernels" -l snapshot -d 'Read the host from an archive made by `fastpath snapshot`' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand kernels" -l knowledge -d 'Add advisories and remedies from a TOML file; it can never remove a block' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand kernels" -l format -d 'How to print the list' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c fastpath -n "__fish_fastpath_using_subcommand kernels" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fastpath -n "__fish_fastpath_using_subcommand inspect" -l knowledge -d 'Add advisories and remedies from a TOML file; it can never remove a block' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand inspect" -l format -d 'How to print the answers; JSON is one object per line' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c fastpath -n "__fish_fastpath_using_subcommand inspect" -l first -d 'Stop at the first configuration found in each input'
complete -c fastpath -n "__fish_fastpath_using_subcommand inspect" -s q -l quiet -d 'Print nothing; the exit code tells'
complete -c fastpath -n "__fish_fastpath_using_subcommand inspect" -s v -l verbose -d 'Print also the companion options'
complete -c fastpath -n "__fish_fastpath_using_subcommand inspect" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fastpath -n "__fish_fastpath_using_subcommand snapshot" -s o -l output -d 'The archive to write; `-` is standard output [default: fastpath-snapshot.tar.zst]' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand snapshot" -l root -d 'Read the host in this directory instead of `/`' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand snapshot" -s f -l force -d 'Replace the archive if there is one'
complete -c fastpath -n "__fish_fastpath_using_subcommand snapshot" -s h -l help -d 'Print help'
complete -c fastpath -n "__fish_fastpath_using_subcommand topology" -l root -d 'Read the host in this directory instead of `/`; links resolve inside it' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand topology" -l snapshot -d 'Read the host from an archive made by `fastpath snapshot`' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand topology" -l knowledge -d 'Add advisories and remedies from a TOML file; it can never remove a block' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand topology" -l format -d 'How to show it' -r -f -a "text\t'A tree of lines'
svg\t'A picture'"
complete -c fastpath -n "__fish_fastpath_using_subcommand topology" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fastpath -n "__fish_fastpath_using_subcommand matrix" -l target -d 'Show one target in full, with its advisories and remedies; the exit code tells its verdict' -r
complete -c fastpath -n "__fish_fastpath_using_subcommand matrix" -l data -d 'The survey\'s data set [default: `$XDG_DATA_HOME/fastpath/survey.jsonl`]' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand matrix" -l alternatives -d 'Show other kernels of a target\'s distribution that have the option' -r
complete -c fastpath -n "__fish_fastpath_using_subcommand matrix" -l knowledge -d 'Add advisories and remedies from a TOML file; it can never remove a block' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand matrix" -l format -d 'How to print the matrix' -r -f -a "text\t'For people'
rst\t'reStructuredText, as published'
md\t'Markdown'
csv\t'Comma-separated values'
html\t'One self-contained page'
json\t'For programs'"
complete -c fastpath -n "__fish_fastpath_using_subcommand matrix" -l published -d 'Show the published rows only, whatever a survey has found'
complete -c fastpath -n "__fish_fastpath_using_subcommand matrix" -s q -l quiet -d 'Print nothing; with `--target` the exit code tells'
complete -c fastpath -n "__fish_fastpath_using_subcommand matrix" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fastpath -n "__fish_fastpath_using_subcommand survey" -l flavour -d 'Only targets of these flavours: default, hwe, backports, cloud, rt, lowlatency, uek, rhck' -r
complete -c fastpath -n "__fish_fastpath_using_subcommand survey" -l diff -d 'Show what changed between two runs, the last two if none is named, or from one to the newest row of each target; `published` stands for the published rows, `newest` for the newest ones' -r
complete -c fastpath -n "__fish_fastpath_using_subcommand survey" -l data -d 'The data set to add to [default: `$XDG_DATA_HOME/fastpath/survey.jsonl`]' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand survey" -l keyring -d 'A keyring file or folder besides the system\'s; may be given several times' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand survey" -l mirror -d 'Read a target from this repository; may be given several times, also for one target' -r
complete -c fastpath -n "__fish_fastpath_using_subcommand survey" -l ca-file -d 'Certificates to trust instead of the system\'s' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand survey" -l knowledge -d 'Add advisories and remedies from a TOML file; it can never remove a block' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand survey" -l format -d 'How to print the rows; JSON is one object per line' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c fastpath -n "__fish_fastpath_using_subcommand survey" -l list -d 'List the targets of the catalogue, and read nothing'
complete -c fastpath -n "__fish_fastpath_using_subcommand survey" -l all-kernels -d 'Read every kernel in the repositories, not only the default one'
complete -c fastpath -n "__fish_fastpath_using_subcommand survey" -l allow-stale -d 'Accept indexes and keys past their end; their rows are marked `stale`'
complete -c fastpath -n "__fish_fastpath_using_subcommand survey" -l verify -d 'Read packages whole and check their digests'
complete -c fastpath -n "__fish_fastpath_using_subcommand survey" -l offline -d 'Answer from the cache, without network'
complete -c fastpath -n "__fish_fastpath_using_subcommand survey" -s q -l quiet -d 'Print nothing; the exit code tells'
complete -c fastpath -n "__fish_fastpath_using_subcommand survey" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fastpath -n "__fish_fastpath_using_subcommand explain" -l knowledge -d 'Add advisories and remedies from a TOML file; it can never remove a block' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand explain" -s h -l help -d 'Print help'
complete -c fastpath -n "__fish_fastpath_using_subcommand ais-check" -s q -l quiet -d 'Print nothing but warnings; the exit code tells'
complete -c fastpath -n "__fish_fastpath_using_subcommand ais-check" -s v -l verbose -d 'Print also the HIP libraries that were found'
complete -c fastpath -n "__fish_fastpath_using_subcommand ais-check" -s h -l help -d 'Print help'
complete -c fastpath -n "__fish_fastpath_using_subcommand bench" -l block -d 'Bytes of a request, powers of two from 4K to 1G [default: 4K to 64M in steps of four]' -r
complete -c fastpath -n "__fish_fastpath_using_subcommand bench" -l threads -d 'Threads that share one file, 1 to 256' -r
complete -c fastpath -n "__fish_fastpath_using_subcommand bench" -l format -d 'How to show it' -r -f -a "text\t'Tables'
json\t'For programs'
svg\t'A plot'"
complete -c fastpath -n "__fish_fastpath_using_subcommand bench" -l root -d 'Read kernel and mounts in this directory instead of `/`; what the running kernel calls itself counts all the same' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand bench" -l direct -d 'Open the file with O_DIRECT: measure the drive instead of the page cache'
complete -c fastpath -n "__fish_fastpath_using_subcommand bench" -l quick -d 'Few rounds and sizes, to see that it works'
complete -c fastpath -n "__fish_fastpath_using_subcommand bench" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fastpath -n "__fish_fastpath_using_subcommand cp" -l root -d 'Read kernel and mounts in this directory instead of `/`; what the running kernel calls itself counts all the same' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand cp" -l in-place -d 'Write into the file that is there'
complete -c fastpath -n "__fish_fastpath_using_subcommand cp" -s q -l quiet -d 'Do not say which way the bytes went'
complete -c fastpath -n "__fish_fastpath_using_subcommand cp" -s h -l help -d 'Print help'
complete -c fastpath -n "__fish_fastpath_using_subcommand stats" -l format -d 'How to print them' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c fastpath -n "__fish_fastpath_using_subcommand stats" -s w -l wait -d 'Wait for the process to end, and show its statistics then'
complete -c fastpath -n "__fish_fastpath_using_subcommand stats" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c fastpath -n "__fish_fastpath_using_subcommand verify" -l seed -d 'The patterns\' seed, to repeat a run [default: the time]' -r
complete -c fastpath -n "__fish_fastpath_using_subcommand verify" -l root -d 'Read kernel and mounts in this directory instead of `/`; what the running kernel calls itself counts all the same' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand verify" -l force -d 'Also on a kernel whose fastpath an advisory blocks'
complete -c fastpath -n "__fish_fastpath_using_subcommand verify" -l fallback-only -d 'Leave the fastpath out'
complete -c fastpath -n "__fish_fastpath_using_subcommand verify" -s q -l quiet -d 'Print nothing but warnings; the exit code tells'
complete -c fastpath -n "__fish_fastpath_using_subcommand verify" -s h -l help -d 'Print help'
complete -c fastpath -n "__fish_fastpath_using_subcommand completions" -s h -l help -d 'Print help'
complete -c fastpath -n "__fish_fastpath_using_subcommand aiscp" -l root -d 'Read kernel and mounts in this directory instead of `/`; what the running kernel calls itself counts all the same' -r -F
complete -c fastpath -n "__fish_fastpath_using_subcommand aiscp" -s h -l help -d 'Print help'
complete -c fastpath -n "__fish_fastpath_using_subcommand ask-runtime" -s h -l help -d 'Print help'
