// SPDX-License-Identifier: Apache-2.0
//! Parses XML of a vCenter into a small element tree, with strict limits.
//!
//! No DOCTYPE, so no entities of its own; bounded in depth, in elements, and by the budget of the inspection; no character that XML 1.0
//! forbids, however it is written.

use super::inspection_limits::Held;
use super::meter::Meter;
use super::offload::{Unread, Work};
use quick_xml::NsReader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::{NamespaceResolver, ResolveResult};
use std::ops::Deref;
use vdo_api::types::plain;

const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// SOAP answers are about ten deep.
const MAX_DEPTH: usize = 64;
/// What an element costs in memory besides its text: its place among others, of which up to half are empty, and its name.
const COST: usize = 2 * size_of::<Element>() + 64;
/// An element of SOAP has two or three. The reader compares each with all others.
const MAX_ATTRIBUTES: usize = 32;
/// What a namespace is called that is none of [`NAMESPACES`].
const OTHER: &str = "(another namespace)";

/// The namespaces that anything is looked for in. An element has one of these and no copy of what a server wrote, which may be long.
pub const SOAP: &str = "http://schemas.xmlsoap.org/soap/envelope/";
/// The inventory.
pub const VIM: &str = "urn:vim25";
pub const PBM: &str = "urn:pbm";
pub const VSAN: &str = "urn:vsan";
/// The service of users.
pub const SSO: &str = "urn:sso";
const NAMESPACES: [&str; 5] = [SOAP, VIM, PBM, VSAN, SSO];

/// An element: namespace and local name, its text, and its children.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    /// One of [`NAMESPACES`]; empty when it has none.
    pub namespace: &'static str,
    /// The local name.
    pub name: String,
    /// The local part of `xsi:type`, whatever its prefix; empty when there is none.
    pub xsi_type: String,
    /// The attribute `type` of no namespace, which names the kind of a managed object.
    pub kind: String,
    /// The text, without that of the children.
    pub text: String,
    /// The elements inside.
    pub children: Vec<Element>,
}

impl Element {
    /// The first child of this local name.
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// All children of this local name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// How many elements it is, itself included, and the memory that they take.
    fn size(&self) -> (usize, usize) {
        let texts = self.name.len() + self.xsi_type.len() + self.kind.len() + self.text.len();
        self.children
            .iter()
            .map(Self::size)
            .fold((1, COST + texts), |all, one| (all.0 + one.0, all.1 + one.1))
    }

    fn adopt(&mut self, child: Self) {
        // Most elements with children have one: a vector would begin with places for four.
        if self.children.is_empty() {
            self.children.reserve_exact(1);
        }
        self.children.push(child);
    }

    /// Whether this is that element of that namespace.
    pub fn is(&self, namespace: &str, name: &str) -> bool {
        self.namespace == namespace && self.name == name
    }

    /// The text of the first child of this name, without the space around it; empty when there is none.
    pub fn text_of(&self, name: &str) -> String {
        self.child(name).map(|child| child.text.trim().to_owned()).unwrap_or_default()
    }
}

/// A document, and the memory that it takes.
#[derive(Debug)]
pub struct Tree {
    /// The outermost element.
    pub root: Element,
    _held: Held,
}

impl Deref for Tree {
    type Target = Element;

    fn deref(&self) -> &Element {
        &self.root
    }
}

impl Tree {
    /// The part of it that `pick` chooses.
    pub fn map<E>(self, pick: impl FnOnce(Element) -> Result<Element, E>) -> Result<Self, E> {
        let root = pick(self.root)?;
        Ok(Self { root, ..self })
    }
}

/// Reads a document.
pub fn parse(text: &str, work: &Work) -> Result<Tree, Unread> {
    parse_each(text, work, "", &mut (), |(), _| Ok(()))
}

/// The same, but elements of this local name are handed over one by one as they end, and are not kept: a long list takes no more
/// memory than its longest item.
pub fn parse_each<T>(
    text: &str,
    work: &Work,
    name: &str,
    taken: &mut T,
    take: fn(&mut T, Element) -> Result<(), Unread>,
) -> Result<Tree, Unread> {
    let mut reader = NsReader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut open: Vec<Element> = vec![];
    let mut kept = Meter::new(work);
    loop {
        kept.step()?;
        let (namespace, event) = reader.read_resolved_event().map_err(bad("is not XML"))?;
        match event {
            Event::Start(start) => {
                if open.len() == MAX_DEPTH {
                    return Err(format!("it is nested deeper than {MAX_DEPTH} elements").into());
                }
                let namespace = declared(namespace)?;
                open.push(element(&start, namespace, reader.resolver(), &mut kept)?);
            }
            Event::End(_) => {
                let done = open.pop().ok_or("it closes an element that is not open")?;
                match open.last_mut() {
                    Some(_) if done.name == name => {
                        kept.handed_over(done.size());
                        take(taken, done)?;
                    }
                    Some(parent) => parent.adopt(done),
                    None => {
                        return Ok(Tree {
                            root: done,
                            _held: kept.finish()?,
                        });
                    }
                }
            }
            Event::Text(part) => push(&mut open, &part, &mut kept)?,
            Event::CData(part) => push(&mut open, &part, &mut kept)?,
            Event::GeneralRef(reference) => push_reference(&mut open, &reference, &mut kept)?,
            Event::DocType(_) => return Err("it declares a DOCTYPE, which SOAP forbids".into()),
            Event::Eof => return Err("it is incomplete".into()),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

/// The namespace of an element.
fn declared(namespace: ResolveResult<'_>) -> Result<&'static str, Unread> {
    match namespace {
        ResolveResult::Bound(namespace) => Ok(known(namespace.into_inner())),
        ResolveResult::Unbound => Ok(""),
        ResolveResult::Unknown(_) => Err("it uses a namespace prefix that it does not declare".into()),
    }
}

/// An element as it begins.
fn element(start: &BytesStart<'_>, namespace: &'static str, resolver: &NamespaceResolver, kept: &mut Meter) -> Result<Element, Unread> {
    let name = start.local_name().into_inner().to_owned();
    kept.element(COST + name.len())?;
    let mut element = Element {
        namespace,
        name,
        ..Element::default()
    };
    for (number, attribute) in start.attributes().enumerate() {
        if number == MAX_ATTRIBUTES {
            return Err(format!("it has an element with more than {MAX_ATTRIBUTES} attributes").into());
        }
        let attribute = attribute.map_err(bad("has a bad attribute"))?;
        let (namespace, name) = resolver.resolve_attribute(attribute.key);
        if name.into_inner() != "type" {
            continue;
        }
        kept.text(attribute.value.len())?;
        let value = attribute
            .normalized_value(quick_xml::XmlVersion::Implicit1_0)
            .map_err(bad("has a bad attribute"))?;
        allowed(&value)?;
        match namespace {
            ResolveResult::Bound(namespace) if namespace.into_inner() == XSI => {
                value.rsplit(':').next().unwrap_or_default().clone_into(&mut element.xsi_type);
            }
            ResolveResult::Unbound => element.kind = value.into_owned(),
            _ => {}
        }
    }
    Ok(element)
}

/// Adds the character that a reference stands for.
fn push_reference(open: &mut [Element], reference: &BytesRef<'_>, kept: &mut Meter) -> Result<(), Unread> {
    let character = reference.resolve_char_ref().map_err(bad("refers to no character"))?;
    match (character, resolve_predefined_entity(reference)) {
        (Some(character), _) => push(open, character.encode_utf8(&mut [0; 4]), kept),
        (None, Some(text)) => push(open, text, kept),
        (None, None) => Err("it refers to an entity that XML does not define".into()),
    }
}

/// A message of the reader may repeat any part of the document.
fn bad<E: std::fmt::Display>(what: &str) -> impl Fn(E) -> Unread {
    move |error| format!("it {what} ({})", plain(&error.to_string())).into()
}

/// The namespace as it is known here.
fn known(namespace: &str) -> &'static str {
    NAMESPACES.into_iter().find(|known| *known == namespace).unwrap_or(OTHER)
}

/// Whether XML 1.0 has the character at all, also as a reference: most control characters it has not.
pub fn is_character(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Control characters would be commands to a terminal that shows them.
fn allowed(text: &str) -> Result<(), Unread> {
    match text.chars().find(|c| !is_character(*c)) {
        Some(c) => Err(format!("it contains the character U+{:04X}, which XML forbids", u32::from(c)).into()),
        None => Ok(()),
    }
}

fn push(open: &mut [Element], text: &str, kept: &mut Meter<'_>) -> Result<(), Unread> {
    allowed(text)?;
    match open.last_mut() {
        Some(element) => {
            kept.text(text.len())?;
            element.text.push_str(text);
        }
        None if text.trim().is_empty() => {}
        None => return Err("it has text outside of any element".into()),
    }
    Ok(())
}

/// A document that is known to be right.
#[cfg(test)]
pub fn whole(text: &str) -> Element {
    parse(text, &Work::with(super::Budget::default())).expect("XML").root
}

#[cfg(test)]
mod tests {
    use super::super::inspection_limits::{Budget, Limits, Pool};
    use super::super::meter::MAX_ELEMENTS;
    use super::*;
    use crate::vsphere::Excess;

    fn parse(text: &str) -> Result<Element, Unread> {
        super::parse(text, &Work::with(Budget::default())).map(|tree| tree.root)
    }

    /// The texts of the items `o`, and what remains.
    fn parse_each(text: &str, work: &Work) -> Result<(Vec<String>, Tree), Unread> {
        let mut seen = vec![];
        let tree = super::parse_each(text, work, "o", &mut seen, |seen: &mut Vec<String>, item| {
            seen.push(item.text);
            Ok(())
        })?;
        Ok((seen, tree))
    }

    #[test]
    fn xml_parse_text_and_namespaces_are_read() {
        let tree =
            parse("<?xml version=\"1.0\"?>\n<a:x xmlns:a='urn:a' xmlns='urn:b'><y>1 &lt; 2 &amp;&#x26; <![CDATA[<3>]]></y><z/></a:x>")
                .expect("XML");
        assert!(tree.is(OTHER, "x") && tree.children[0].is(OTHER, "y"));
        let soap = format!("<a xmlns='{VIM}'><b xmlns=''/><c xmlns='{SOAP}'/></a>");
        let tree_of_known = parse(&soap).expect("XML");
        assert!(tree_of_known.is(VIM, "a") && tree_of_known.children[0].is("", "b") && tree_of_known.children[1].is(SOAP, "c"));
        assert_eq!(tree.text_of("y"), "1 < 2 && <3>");
        assert_eq!(tree.text_of("z"), "");
        assert_eq!(tree.text_of("absent"), "");
    }

    /// A managed object bears `type` twice: of no namespace, and of the schema's under any prefix.
    #[test]
    fn xml_parse_type_attributes_differ_by_namespace() {
        let tree = parse(
            "<v xmlns:q='http://www.w3.org/2001/XMLSchema-instance' xmlns:xsi='urn:other' xmlns:w='urn:vim25' \
             type='Folder' q:type='w:ManagedObjectReference' xsi:type='nothing'>group-d1</v>",
        )
        .expect("XML");
        assert_eq!((tree.kind.as_str(), tree.xsi_type.as_str()), ("Folder", "ManagedObjectReference"));
        assert!(matches!(parse("<a type='1' type='2'/>"), Err(Unread::Malformed(because)) if because.contains("attribute")));
    }

    #[test]
    fn xml_parse_each_list_items_are_streamed() {
        let work = Work::with(Budget::default());
        let (seen, tree) = parse_each("<r><o>1</o><token>t</token><o>2</o></r>", &work).expect("XML");
        assert_eq!(
            (seen, tree.children.len(), tree.text_of("token")),
            (vec!["1".to_owned(), "2".into()], 1, "t".into())
        );
    }

    #[test]
    fn xml_parse_hostile_document_is_rejected() {
        let deep = "<a>".repeat(100_000);
        let many = format!("<a>{}</a>", "<b/>".repeat(MAX_ELEMENTS));
        let in_an_item = format!("<a><o>{}</o></a>", "<b/>".repeat(MAX_ELEMENTS));
        let attributes: String = (0..100_000).map(|i| format!(" a{i}=''")).collect();
        let attributes = format!("<a{attributes}/>");
        let prefixes: String = (0..100_000).map(|i| format!(" xmlns:a{i}='u'")).collect();
        let prefixes = format!("<a{prefixes}/>");
        let long_name = format!("<a></{}>", "b".repeat(1 << 20));
        for (text, reason) in [
            ("", "it is incomplete"),
            ("hello", "outside"),
            ("<a><b></a>", "not XML"),
            ("<a><b>", "it is incomplete"),
            ("<q:a/>", "prefix"),
            ("<!DOCTYPE a [<!ENTITY x 'xx'>]><a>&x;</a>", "DOCTYPE"),
            ("<a>&x;</a>", "entity"),
            ("<a>&#0;</a>", "character"),
            ("<a>&#x110000;</a>", "character"),
            ("<a>&#27;]0;title&#7;</a>", "U+001B"),
            ("<a>\u{1b}[2J</a>", "U+001B"),
            ("<a><![CDATA[\u{7}]]></a>", "U+0007"),
            ("<a type='x&#8;'/>", "U+0008"),
            ("<a>\u{ffff}</a>", "U+FFFF"),
            (&many, "more than 50000 XML elements"),
            (&in_an_item, "more than 50000 XML elements"),
            (&deep, "deeper"),
            (&attributes, "more than 32 attributes"),
            (&prefixes, "namespace"),
            (&long_name, "not XML"),
        ] {
            match parse_each(text, &Work::with(Budget::default())) {
                Err(Unread::Malformed(error)) => assert!(error.contains(reason), "{error} does not say {reason:?}"),
                other => panic!("{other:?} instead of {reason:?}"),
            }
        }
    }

    /// The whole text of a namespace was copied into every element: 67 GB of this megabyte.
    #[test]
    fn xml_parse_long_namespace_is_not_copied_into_elements() {
        let text = format!("<e xmlns=\"{}\">{}</e>", "u".repeat(500_000), "<a/>".repeat(40_000));
        let tree = parse(&text).expect("XML");
        assert_eq!((tree.children.len(), tree.children[0].namespace), (40_000, OTHER));
    }

    #[test]
    fn xml_parse_long_list_is_not_limited_as_a_whole() {
        let text = format!("<r>{}</r>", "<o><v/></o>".repeat(2 * MAX_ELEMENTS));
        let (seen, _) = parse_each(&text, &Work::with(Budget::default())).expect("XML");
        assert_eq!(seen.len(), 2 * MAX_ELEMENTS);
    }

    /// What is kept is held against the memory, and free again; what was handed over takes none.
    #[test]
    fn xml_parse_over_budget_is_refused() {
        let pool = Pool::new(4 << 20);
        let work = |limits: Limits| Work::with(Budget::new(limits, &pool));
        let many = format!("<r>{}</r>", "<x/>".repeat(40_000));
        let list = format!("<r>{}</r>", "<o/>".repeat(40_000));
        let long = format!("<r>{}</r>", "x".repeat(3 << 20));
        for text in [&many, &long] {
            let reported = super::parse(text, &work(Limits::default())).map(|tree| tree.root.children.len());
            assert_eq!((reported, pool.used()), (Err(Excess::Memory.into()), 0));
        }
        let (_, tree) = parse_each(&list, &work(Limits::default())).expect("a long list");
        assert!((1..200_000).contains(&pool.used()), "{} bytes", pool.used());
        drop(tree);
        assert_eq!(pool.used(), 0);
        let few = Limits {
            elements: 30_000,
            ..Limits::default()
        };
        let reported = parse_each(&list, &work(few)).map(|(seen, _)| seen.len());
        assert_eq!(reported, Err(Excess::Elements(30_000).into()));
        let short = Limits {
            whole: std::time::Duration::ZERO,
            ..Limits::default()
        };
        let reported = parse_each(&list, &work(short)).map(|(seen, _)| seen.len());
        assert_eq!(reported, Err(Excess::Time(std::time::Duration::ZERO).into()));
    }
}
