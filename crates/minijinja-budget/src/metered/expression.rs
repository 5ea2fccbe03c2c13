//! Expressions of a metered template.

use super::{FILTERS, Printed, Printer, TESTS, own_name, refuse};
use minijinja::machinery::ast::{BinOpKind, CallArg, CompareOpKind, Expr, UnaryOpKind};

impl Printer {
    /// An expression whose value is measured before it is used.
    pub(super) fn measured(&mut self, expression: &Expr<'_>) -> Printed {
        const SMALL: usize = 64;
        let small = matches!(expression, Expr::Const(node) if node.value.as_str().is_none_or(|text| text.len() <= SMALL));
        if small {
            return self.expression(expression);
        }
        self.call("__m", expression)
    }

    fn call(&mut self, function: &str, argument: &Expr<'_>) -> Printed {
        self.put(function);
        self.put("(");
        self.expression(argument)?;
        self.put(")");
        Ok(())
    }

    fn list(&mut self, items: &[Expr<'_>]) -> Printed {
        for (index, item) in items.iter().enumerate() {
            self.put(if index == 0 { "" } else { ", " });
            self.expression(item)?;
        }
        Ok(())
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>]) -> Printed {
        for (index, argument) in arguments.iter().enumerate() {
            self.put(if index == 0 { "" } else { ", " });
            match argument {
                CallArg::Pos(value) => self.measured(value)?,
                CallArg::Kwarg(name, value) => {
                    own_name(name, value.span().start_line)?;
                    self.put(name);
                    self.put("=");
                    self.measured(value)?;
                }
                CallArg::PosSplat(value) | CallArg::KwargSplat(value) => {
                    return refuse(value.span().start_line.into(), "* and ** in calls are not offered");
                }
            }
        }
        Ok(())
    }

    pub(super) fn literal(&mut self, text: &str) {
        let json = serde_json::Value::from(text).to_string();
        self.put(&json);
    }

    pub(super) fn expression(&mut self, expression: &Expr<'_>) -> Printed {
        let line = expression.span().start_line;
        self.at(line);
        match expression {
            Expr::Var(node) => {
                own_name(node.id, line)?;
                self.put(node.id);
                Ok(())
            }
            Expr::Const(node) => match node.value.as_str() {
                Some(text) => {
                    self.literal(text);
                    Ok(())
                }
                None if node.value.is_none() => {
                    self.put("none");
                    Ok(())
                }
                None => match serde_json::to_string(&node.value) {
                    Ok(text) => {
                        self.put(&text);
                        Ok(())
                    }
                    Err(_) => refuse(line.into(), "a constant that has no JSON form"),
                },
            },
            Expr::Slice(node) => {
                self.measured(&node.expr)?;
                self.put("[");
                for (index, part) in [&node.start, &node.stop, &node.step].into_iter().enumerate() {
                    self.put(if index == 0 { "" } else { ":" });
                    if let Some(part) = part {
                        self.call("__n", part)?;
                    }
                }
                // `x[a:b:]` is not read; a step of one is what it would mean
                self.put(if node.step.is_none() { "1]" } else { "]" });
                Ok(())
            }
            Expr::UnaryOp(node) => {
                self.put(match node.op {
                    UnaryOpKind::Not => "(not (",
                    UnaryOpKind::Neg => "(-(",
                });
                self.expression(&node.expr)?;
                self.put("))");
                Ok(())
            }
            Expr::BinOp(node) => self.operation(node.op, &node.left, &node.right),
            Expr::Compare(node) => {
                self.put("(");
                self.measured(&node.expr)?;
                for step in &node.ops {
                    self.put(compare(step.op));
                    self.measured(&step.expr)?;
                }
                self.put(")");
                Ok(())
            }
            Expr::IfExpr(node) => {
                self.put("((");
                self.expression(&node.true_expr)?;
                self.put(") if (");
                self.expression(&node.test_expr)?;
                self.put(")");
                if let Some(other) = &node.false_expr {
                    self.put(" else (");
                    self.expression(other)?;
                    self.put(")");
                }
                self.put(")");
                Ok(())
            }
            Expr::Filter(node) => {
                known("filter", node.name, &FILTERS, line)?;
                let Some(value) = &node.expr else {
                    return refuse(line.into(), "a filter without a value");
                };
                // `default` is the one filter that takes what is not there
                if matches!(node.name, "default" | "d") {
                    self.put("(");
                    self.expression(value)?;
                    self.put(")");
                } else {
                    self.measured(value)?;
                }
                self.put("|");
                self.put(node.name);
                self.put("(");
                self.arguments(&node.args)?;
                self.put(")");
                Ok(())
            }
            Expr::Test(node) => {
                known("test", node.name, &TESTS, line)?;
                self.put("(");
                if matches!(node.name, "defined" | "undefined") {
                    self.put("(");
                    self.expression(&node.expr)?;
                    self.put(")");
                } else {
                    self.measured(&node.expr)?;
                }
                self.put(" is ");
                self.put(node.name);
                if !node.args.is_empty() {
                    self.put("(");
                    self.arguments(&node.args)?;
                    self.put(")");
                }
                self.put(")");
                Ok(())
            }
            Expr::GetAttr(node) => {
                self.owner(&node.expr)?;
                self.put(".");
                self.put(node.name);
                Ok(())
            }
            Expr::GetItem(node) => {
                self.owner(&node.expr)?;
                self.put("[");
                self.measured(&node.subscript_expr)?;
                self.put("]");
                Ok(())
            }
            Expr::Call(node) => {
                match &node.expr {
                    Expr::Var(name) => {
                        own_name(name.id, line)?;
                        self.put(name.id);
                    }
                    // a macro of an imported template
                    Expr::GetAttr(method) => match &method.expr {
                        Expr::Var(module) if module.id != "self" => {
                            own_name(module.id, line)?;
                            self.put(module.id);
                            self.put(".");
                            self.put(method.name);
                        }
                        _ => return refuse(line.into(), "only functions and macros can be called"),
                    },
                    _ => return refuse(line.into(), "only functions and macros can be called"),
                }
                self.put("(");
                self.arguments(&node.args)?;
                self.put(")");
                Ok(())
            }
            Expr::List(node) => {
                self.put("[");
                self.list(&node.items)?;
                self.put("]");
                Ok(())
            }
            Expr::Tuple(node) => {
                self.put("[");
                self.list(&node.items)?;
                self.put("]");
                Ok(())
            }
            Expr::Map(node) => {
                self.put("{");
                for (index, (key, value)) in node.keys.iter().zip(&node.values).enumerate() {
                    self.put(if index == 0 { " " } else { ", " });
                    self.measured(key)?;
                    self.put(": ");
                    self.expression(value)?;
                }
                self.put(" }");
                Ok(())
            }
        }
    }

    /// What an attribute or item is looked up in. Parentheses only where they are needed: the parser limits how many it reads.
    fn owner(&mut self, owner: &Expr<'_>) -> Printed {
        if matches!(owner, Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) | Expr::Call(_)) {
            return self.expression(owner);
        }
        self.put("(");
        self.expression(owner)?;
        self.put(")");
        Ok(())
    }

    fn operation(&mut self, op: BinOpKind, left: &Expr<'_>, right: &Expr<'_>) -> Printed {
        let number = |sign| (sign, Some("__n"));
        let (sign, function) = match op {
            BinOpKind::Concat => (" ~ ", Some("__m")),
            BinOpKind::Add => (" + ", Some("__m")),
            BinOpKind::In => (" in ", Some("__m")),
            BinOpKind::Eq => (" == ", Some("__m")),
            BinOpKind::Ne => (" != ", Some("__m")),
            BinOpKind::Lt => (" < ", Some("__m")),
            BinOpKind::Lte => (" <= ", Some("__m")),
            BinOpKind::Gt => (" > ", Some("__m")),
            BinOpKind::Gte => (" >= ", Some("__m")),
            BinOpKind::ScAnd => (" and ", None),
            BinOpKind::ScOr => (" or ", None),
            BinOpKind::Sub => number(" - "),
            BinOpKind::Mul => number(" * "),
            BinOpKind::Div => number(" / "),
            BinOpKind::FloorDiv => number(" // "),
            BinOpKind::Rem => number(" % "),
            BinOpKind::Pow => number(" ** "),
        };
        let operand = |printer: &mut Self, value: &Expr<'_>| match function {
            Some("__m") => printer.measured(value),
            Some(function) => printer.call(function, value),
            None => {
                printer.put("(");
                printer.expression(value)?;
                printer.put(")");
                Ok(())
            }
        };
        // `a ~ b ~ c` stays flat: its result is as large as what was measured
        let flat = matches!(op, BinOpKind::Concat | BinOpKind::Add | BinOpKind::ScAnd | BinOpKind::ScOr);
        let mut operands = vec![right];
        let mut first = left;
        while let Expr::BinOp(node) = first
            && flat
            && std::mem::discriminant(&node.op) == std::mem::discriminant(&op)
        {
            operands.push(&node.right);
            first = &node.left;
        }
        self.put("(");
        operand(self, first)?;
        for value in operands.into_iter().rev() {
            self.put(sign);
            operand(self, value)?;
        }
        self.put(")");
        Ok(())
    }
}

fn compare(op: CompareOpKind) -> &'static str {
    match op {
        CompareOpKind::Eq => " == ",
        CompareOpKind::Ne => " != ",
        CompareOpKind::Lt => " < ",
        CompareOpKind::Lte => " <= ",
        CompareOpKind::Gt => " > ",
        CompareOpKind::Gte => " >= ",
        CompareOpKind::In => " in ",
        CompareOpKind::NotIn => " not in ",
    }
}

fn known(what: &str, name: &str, offered: &[&str], line: u16) -> Printed {
    if offered.contains(&name) {
        return Ok(());
    }
    refuse(
        line.into(),
        format!("there is no {what} {name:?}; templates have {}", offered.join(", ")),
    )
}
