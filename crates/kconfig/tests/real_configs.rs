//! Real kernel configurations, read where they lie. They are no part of this tree.

use std::env;
use std::fs;
use std::path::Path;

use fastpath_kconfig::{SYMBOLS, Symbol, Text, Value, gzip};

/// The folder with the configurations and their `INDEX.tsv`: file, origin, expected answer, why.
const FOLDER: &str = "FASTPATH_KERNEL_CONFIGS";

#[test]
#[allow(clippy::print_stdout, reason = "a skipped test says so")]
fn real_configurations_give_their_known_answers() {
    let Some(folder) = env::var_os(FOLDER) else {
        println!("skipped, because {FOLDER} is not set");
        return;
    };
    let folder = Path::new(&folder);
    let index = fs::read_to_string(folder.join("INDEX.tsv")).expect("the folder has an index");
    let mut read = 0;
    for row in index.lines().skip(1).filter(|row| !row.is_empty()) {
        let mut columns = row.split('\t');
        let (Some(file), Some(_origin), Some(expected)) =
            (columns.next(), columns.next(), columns.next())
        else {
            panic!("a row of three columns or more: {row}")
        };
        let packed = fs::read(folder.join(file)).expect("the file of a row is there");
        let inflated = gzip::inflate(&packed, gzip::OUTPUT_LIMIT);
        assert_eq!(inflated.end, Ok(()), "{file}");
        let text = Text::new(&inflated.text);
        assert_eq!(text.check(), Ok(()), "{file}");
        let option = text.find(Symbol::PciP2pdma);
        let expected = match expected {
            "yes" => Value::Y,
            "no" => Value::NotSet,
            "not-set-because-absent" => Value::Absent,
            other => panic!("{file}: no such answer: {other}"),
        };
        assert_eq!(option.value, expected, "{file}");
        // A fragment decides nothing; each of the others is a whole configuration.
        assert_eq!(text.is_whole(), !file.contains("fragment"), "{file}");
        let scan = text.scan();
        for symbol in SYMBOLS {
            assert_eq!(scan.get(symbol), text.find(symbol), "{file}: {}", symbol.name());
            assert_eq!(scan.get(symbol).value, text.value(symbol.name()), "{file}");
        }
        if option.lines > 0 {
            let mut lines = inflated.text.split(|&byte| byte == b'\n');
            let line = lines.nth(text.line_number(option.offset) as usize - 1);
            assert_eq!(line, Some(text.line_at(option.offset)), "{file}");
        }
        read += 1;
    }
    assert!(read > 0, "an index without rows");
    println!("{read} configurations read");
}
