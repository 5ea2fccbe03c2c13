//! The metered form of a template: parsed, checked against the language, and printed again with every value weighed before its use.

mod expression;

use minijinja::machinery::ast::{Expr, Stmt};
use minijinja::machinery::{Token, parse, tokenize};
use minijinja::syntax::SyntaxConfig;

/// Bytes of one template.
pub const TEMPLATE_LIMIT: usize = 60_000;

/// Operators in one tag, and `elif` in one template: how deep an expression can get without any parenthesis.
const DEEPENING_LIMIT: usize = 400;

/// The filters that a template may use.
pub const FILTERS: [&str; 20] = [
    "bool", "count", "d", "default", "first", "float", "int", "items", "join", "last", "length", "list", "lower", "max", "min", "replace",
    "split", "text", "trim", "upper",
];

/// The tests that a template may use after `is`.
pub const TESTS: [&str; 19] = [
    "boolean",
    "defined",
    "endingwith",
    "eq",
    "even",
    "false",
    "in",
    "integer",
    "iterable",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "sequence",
    "startingwith",
    "string",
    "true",
    "undefined",
];

/// A template is not one, or uses what the language does not offer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct Refusal {
    /// The line, from 1; 0 when it is not known.
    pub line: usize,
    /// What is wrong and what to do.
    pub message: String,
}

/// The syntax of templates.
pub(crate) fn syntax() -> Result<SyntaxConfig, minijinja::Error> {
    SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build()
}

/// The metered form of a template, to be compiled without trimming: the blanks are decided already.
pub(crate) fn metered(name: &str, source: &str) -> Result<String, Refusal> {
    if source.len() > TEMPLATE_LIMIT {
        return refuse(0, format!("the template is larger than {TEMPLATE_LIMIT} bytes; split it"));
    }
    let broken = |error: &minijinja::Error| Refusal {
        line: error.line().unwrap_or(0),
        message: match error.detail() {
            Some(detail) => format!("{}: {detail}", error.kind()),
            None => error.kind().to_string(),
        },
    };
    let syntax = syntax().map_err(|error| broken(&error))?;
    shallow(source, &syntax).map_err(|error| error.unwrap_or_else(|error| broken(&error)))?;
    let tree = parse(source, name, syntax).map_err(|error| broken(&error))?;
    let mut printer = Printer {
        text: String::with_capacity(source.len() * 2),
        line: 1,
    };
    printer.statement(&tree)?;
    Ok(printer.text)
}

fn refuse<T>(line: usize, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal {
        line,
        message: message.into(),
    })
}

/// Refuses what would nest without parentheses deep enough to end the stack of the code that walks the tree.
fn shallow(source: &str, syntax: &SyntaxConfig) -> Result<(), Result<Refusal, minijinja::Error>> {
    let (mut in_tag, mut alternatives) = (0, 0);
    for token in tokenize(source, false, syntax.clone()) {
        let (token, span) = token.map_err(Err)?;
        match token {
            Token::VariableStart | Token::BlockStart => in_tag = 0,
            Token::Ident("elif") => alternatives += 1,
            // what stands between operands separates them and does not nest
            Token::Comma | Token::Colon | Token::Str(_) | Token::String(_) | Token::Int(_) => {}
            Token::Ident(word) if !["and", "or", "not", "is", "in", "if", "else"].contains(&word) => {}
            Token::TemplateData(_) | Token::VariableEnd | Token::BlockEnd => {}
            Token::BracketClose | Token::ParenClose | Token::BraceClose => {}
            _ => in_tag += 1,
        }
        if in_tag > DEEPENING_LIMIT || alternatives > DEEPENING_LIMIT {
            let message = format!("more than {DEEPENING_LIMIT} operators in one tag; set variables first");
            return Err(Ok(Refusal {
                line: span.start_line.into(),
                message,
            }));
        }
    }
    Ok(())
}

struct Printer {
    text: String,
    line: usize,
}

type Printed = Result<(), Refusal>;

impl Printer {
    fn put(&mut self, text: &str) {
        self.line += text.matches('\n').count();
        self.text.push_str(text);
    }

    /// Blank lines inside a tag until the author's line is reached.
    fn at(&mut self, line: u16) {
        while self.line < line.into() {
            self.put("\n");
        }
    }

    fn open(&mut self, words: &str, line: u16) {
        self.put("{%");
        self.at(line);
        self.put(" ");
        self.put(words);
    }

    fn tag(&mut self, words: &str) {
        self.put("{% ");
        self.put(words);
        self.put(" %}");
    }

    fn statements(&mut self, statements: &[Stmt<'_>]) -> Printed {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Stmt<'_>) -> Printed {
        match statement {
            Stmt::Template(node) => self.statements(&node.children),
            Stmt::EmitRaw(node) => {
                self.put("{{");
                self.at(node.span().start_line);
                self.literal(node.raw);
                self.put("|__raw}}");
                Ok(())
            }
            Stmt::EmitExpr(node) => {
                self.put("{{");
                self.at(node.span().start_line);
                self.put("(");
                self.expression(&node.expr)?;
                self.put(")}}");
                Ok(())
            }
            Stmt::ForLoop(node) => {
                if node.recursive {
                    return refuse(node.span().start_line.into(), "recursive loops are not offered");
                }
                self.open("for ", node.span().start_line);
                self.target(&node.target)?;
                self.put(" in ");
                self.measured(&node.iter)?;
                if let Some(filter) = &node.filter_expr {
                    self.put(" if ");
                    self.expression(filter)?;
                }
                self.put(" %}");
                self.statements(&node.body)?;
                if !node.else_body.is_empty() {
                    self.tag("else");
                    self.statements(&node.else_body)?;
                }
                self.tag("endfor");
                Ok(())
            }
            Stmt::IfCond(node) => {
                self.open("if (", node.span().start_line);
                self.expression(&node.expr)?;
                self.put(") %}");
                self.statements(&node.true_body)?;
                if !node.false_body.is_empty() {
                    self.tag("else");
                    self.statements(&node.false_body)?;
                }
                self.tag("endif");
                Ok(())
            }
            Stmt::WithBlock(node) => {
                self.open("with ", node.span().start_line);
                for (index, (target, value)) in node.assignments.iter().enumerate() {
                    self.put(if index == 0 { "" } else { ", " });
                    self.target(target)?;
                    self.put(" = ");
                    self.measured(value)?;
                }
                self.put(" %}");
                self.statements(&node.body)?;
                self.tag("endwith");
                Ok(())
            }
            Stmt::Set(node) => {
                self.open("set ", node.span().start_line);
                self.target(&node.target)?;
                self.put(" = ");
                self.measured(&node.expr)?;
                self.put(" %}");
                Ok(())
            }
            Stmt::SetBlock(node) if node.filter.is_none() => {
                self.open("set ", node.span().start_line);
                self.target(&node.target)?;
                self.put(" %}");
                self.statements(&node.body)?;
                self.tag("endset");
                Ok(())
            }
            Stmt::Include(node) => {
                self.open("include ", node.span().start_line);
                self.measured(&node.name)?;
                self.put(if node.ignore_missing { " ignore missing %}" } else { " %}" });
                Ok(())
            }
            Stmt::Import(node) => {
                self.open("import ", node.span().start_line);
                self.measured(&node.expr)?;
                self.put(" as ");
                self.target(&node.name)?;
                self.put(" %}");
                Ok(())
            }
            Stmt::FromImport(node) => {
                self.open("from ", node.span().start_line);
                self.measured(&node.expr)?;
                self.put(" import ");
                for (index, (name, alias)) in node.names.iter().enumerate() {
                    self.put(if index == 0 { "" } else { ", " });
                    self.target(name)?;
                    if let Some(alias) = alias {
                        self.put(" as ");
                        self.target(alias)?;
                    }
                }
                self.put(" %}");
                Ok(())
            }
            Stmt::Macro(node) => {
                own_name(node.name, node.span().start_line)?;
                self.open("macro ", node.span().start_line);
                self.put(node.name);
                self.put("(");
                let required = node.args.len().saturating_sub(node.defaults.len());
                for (index, argument) in node.args.iter().enumerate() {
                    self.put(if index == 0 { "" } else { ", " });
                    self.target(argument)?;
                    if let Some(default) = index.checked_sub(required).and_then(|index| node.defaults.get(index)) {
                        self.put("=");
                        self.measured(default)?;
                    }
                }
                self.put(") %}");
                self.statements(&node.body)?;
                self.tag("endmacro");
                Ok(())
            }
            Stmt::Continue(_) => {
                self.tag("continue");
                Ok(())
            }
            Stmt::Break(_) => {
                self.tag("break");
                Ok(())
            }
            Stmt::SetBlock(node) => refuse(
                node.span().start_line.into(),
                "a set block with a filter is not offered; filter where the value is used",
            ),
            Stmt::AutoEscape(node) => refuse(
                node.span().start_line.into(),
                "autoescape is not offered; every value is written as JSON",
            ),
            Stmt::FilterBlock(node) => refuse(node.span().start_line.into(), "filter blocks are not offered; filter a value"),
            Stmt::Block(node) => refuse(node.span().start_line.into(), "blocks are not offered; write a macro"),
            Stmt::Extends(node) => refuse(node.span().start_line.into(), "extends is not offered; use include"),
            Stmt::CallBlock(node) => refuse(node.span().start_line.into(), "call blocks are not offered; pass an argument"),
            Stmt::Do(node) => refuse(node.span().start_line.into(), "do is not offered; write {{ … }} or set"),
        }
    }

    /// Where a value goes: one name, or several with commas between.
    fn target(&mut self, target: &Expr<'_>) -> Printed {
        let names: &[Expr<'_>] = match target {
            Expr::Var(_) => std::slice::from_ref(target),
            Expr::List(list) => &list.items,
            Expr::Tuple(tuple) => &tuple.items,
            other => return refuse(other.span().start_line.into(), "only names can be assigned to"),
        };
        for (index, name) in names.iter().enumerate() {
            let Expr::Var(name) = name else {
                return refuse(name.span().start_line.into(), "only names can be assigned to");
            };
            own_name(name.id, name.span().start_line)?;
            self.put(if index == 0 { "" } else { ", " });
            self.put(name.id);
        }
        Ok(())
    }
}

/// Two underscores are the meter's own.
fn own_name(name: &str, line: u16) -> Printed {
    if name.starts_with("__") {
        return refuse(line.into(), format!("{name}: names that start with two underscores are reserved"));
    }
    Ok(())
}
