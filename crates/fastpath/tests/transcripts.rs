//! The transcripts in `transcripts/` are what a person sees; each is run and compared whole.
//! `TRYCMD=overwrite cargo test -p fastpath --test transcripts` writes what the program says now.

#[test]
fn transcripts() {
    trycmd::TestCases::new()
        .env("XDG_DATA_HOME", "/nonexistent")
        .env("HIPFILE_KNOWLEDGE", "")
        .case("tests/transcripts/*.md");
}
