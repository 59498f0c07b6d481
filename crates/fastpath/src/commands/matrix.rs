//! `fastpath matrix`.

use fastpath_verdict::MatrixRow;

use crate::args::{MatrixArgs, MatrixFormat};
use crate::error::Hinted;
use crate::{output, root};

pub(crate) fn run(args: &MatrixArgs) -> anyhow::Result<u8> {
    let knowledge = root::knowledge(&args.knowledge)?;
    let mut rows = fastpath_verdict::matrix(&knowledge, &[]);
    let mut code = 0;
    if let Some(name) = &args.target {
        let published = knowledge.target(name).map(|target| target.name.as_str());
        rows.retain(|row| Some(row.target.as_str()) == published);
        code = rows.last().ok_or_else(|| unknown_target(name, &knowledge))?.verdict.exit_code();
    }
    if !args.quiet {
        output::data(&render(args, &rows))?;
    }
    Ok(code)
}

fn render(args: &MatrixArgs, rows: &[MatrixRow<'_>]) -> String {
    match args.format {
        MatrixFormat::Text if args.target.is_some() => {
            let text = |row| fastpath_report::row_text(row, output::width());
            rows.iter().map(text).collect::<Vec<_>>().join("\n")
        }
        MatrixFormat::Text => fastpath_report::matrix_text(rows),
        MatrixFormat::Rst => fastpath_report::matrix_rst(rows),
        MatrixFormat::Md => fastpath_report::matrix_markdown(rows),
        MatrixFormat::Csv => fastpath_report::matrix_csv(rows),
        MatrixFormat::Html => fastpath_report::matrix_html(rows),
        MatrixFormat::Json => fastpath_report::matrix_json(rows),
    }
}

fn unknown_target(name: &str, knowledge: &fastpath_knowledge::Knowledge) -> Hinted {
    let names =
        knowledge.targets.iter().flat_map(|target| [target.name.as_str(), target.id.as_str()]);
    let near = super::explain::nearest(name, names);
    Hinted {
        message: format!("there is no target `{name}`"),
        hint: match near {
            near if near.is_empty() => "`fastpath matrix` lists the published ones".to_owned(),
            near => {
                format!("nearest: {}; `fastpath matrix` lists the published ones", near.join(", "))
            }
        },
    }
}
