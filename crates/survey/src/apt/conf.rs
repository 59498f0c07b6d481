//! `apt.conf`: names with scopes and values in quotes.

use std::path::Path;

use super::AptError;

/// A setting with its whole name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// `Acquire::http::Proxy`. Members of lists end with `::`.
    pub name: String,
    /// Its value, without quotes.
    pub value: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Quoted(String),
    Open,
    Close,
    End,
}

pub(super) fn parse(path: &Path, text: &str, settings: &mut Vec<Setting>) -> Result<(), AptError> {
    let wrong = |line, detail: &str| AptError::Line {
        path: path.to_owned(),
        line,
        detail: detail.to_owned(),
    };
    let tokens = tokens(text).map_err(|(line, detail)| wrong(line, detail))?;
    let mut scopes: Vec<String> = Vec::new();
    let mut name: Option<String> = None;
    let mut value = String::new();
    let whole = |scopes: &[String], name: Option<&str>| {
        scopes.iter().map(String::as_str).chain(name).collect::<Vec<_>>().join("::")
    };
    for (line, token) in tokens {
        match token {
            Token::Word(word) if name.is_none() => name = Some(word),
            // Words may follow one another without quotes.
            Token::Word(word) | Token::Quoted(word) => {
                if !value.is_empty() {
                    value.push(' ');
                }
                value.push_str(&word);
            }
            Token::Open => scopes.push(name.take().unwrap_or_default()),
            Token::End => {
                if name.is_some() || !value.is_empty() {
                    // A value alone is a member of the list that the scope is.
                    let last = name.take().unwrap_or_default();
                    let name = whole(&scopes, Some(&last));
                    settings.push(Setting { name, value: std::mem::take(&mut value) });
                }
            }
            Token::Close => {
                if scopes.pop().is_none() {
                    return Err(wrong(line, "expected a setting, found `}`"));
                }
                name = None;
                value.clear();
            }
        }
    }
    Ok(())
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, (usize, &'static str)> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let skip = if first.is_whitespace() {
            line += usize::from(first == '\n');
            first.len_utf8()
        } else if rest.starts_with("//") || first == '#' {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            let end = rest.find("*/").ok_or((line, "expected `*/`, found the end"))? + 2;
            line += rest[..end].matches('\n').count();
            end
        } else if first == '"' {
            let end = rest[1..].find('"').ok_or((line, "expected `\"`, found the end"))?;
            tokens.push((line, Token::Quoted(rest[1..=end].to_owned())));
            line += rest[1..=end].matches('\n').count();
            end + 2
        } else if let Some(token) = match first {
            '{' => Some(Token::Open),
            '}' => Some(Token::Close),
            ';' => Some(Token::End),
            _ => None,
        } {
            tokens.push((line, token));
            1
        } else {
            let ends = |c: char| c.is_whitespace() || matches!(c, '{' | '}' | ';' | '"');
            let end = rest.find(ends).unwrap_or(rest.len());
            tokens.push((line, Token::Word(rest[..end].to_owned())));
            end
        };
        rest = &rest[skip..];
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(String, String)>, String> {
        let mut settings = Vec::new();
        parse(Path::new("f"), text, &mut settings).map_err(|error| error.to_string())?;
        Ok(settings.into_iter().map(|setting| (setting.name, setting.value)).collect())
    }

    #[test]
    fn scopes_lists_and_comments() {
        let text = "// one\n# two\n/* three\n */ Acquire::Check-Valid-Until \"false\";\nAcquire { http { Proxy \"http://p:1/\"; }; Retries 3; };\nDPkg::Post-Invoke { \"a; b\"; \"c\"; };\nAPT::Never:: \"x\";\n";
        let expected = [
            ("Acquire::Check-Valid-Until", "false"),
            ("Acquire::http::Proxy", "http://p:1/"),
            ("Acquire::Retries", "3"),
            ("DPkg::Post-Invoke::", "a; b"),
            ("DPkg::Post-Invoke::", "c"),
            ("APT::Never::", "x"),
        ];
        let found = read(text).unwrap();
        let found: Vec<_> =
            found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        assert_eq!(read("\na \"b"), Err("f: line 2: expected `\"`, found the end".into()));
        assert_eq!(read("/* "), Err("f: line 1: expected `*/`, found the end".into()));
        assert_eq!(read("\n}"), Err("f: line 2: expected a setting, found `}`".into()));
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text: String) {
            let _ = read(&text);
        }
    }
}
