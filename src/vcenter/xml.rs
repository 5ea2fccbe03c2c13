//! A small element tree, read with suspicion: no DOCTYPE, so no entities of its own; bounded in depth and in elements; no character that
//! XML 1.0 forbids, however it is written.

use quick_xml::NsReader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;
use quick_xml::name::ResolveResult;

const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// SOAP answers are about ten deep.
const MAX_DEPTH: usize = 64;
/// How many elements are kept at once, about 10 MB of them. Items of a long list are handed over one by one and do not count together; a
/// page has at most some thousand machines with a dozen values each.
const MAX_ELEMENTS: usize = 50_000;
/// What a namespace is called that is none of [`NAMESPACES`].
const OTHER: &str = "(another namespace)";

/// The namespaces that anything is looked for in. An element has one of these and no copy of what a server wrote, which may be long.
pub(super) const SOAP: &str = "http://schemas.xmlsoap.org/soap/envelope/";
pub(super) const VIM: &str = "urn:vim25";
pub(super) const PBM: &str = "urn:pbm";
const NAMESPACES: [&str; 3] = [SOAP, VIM, PBM];

/// An element: namespace and local name, its text, and its children.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Element {
    /// One of [`NAMESPACES`]; empty when it has none.
    pub(super) namespace: &'static str,
    pub(super) name: String,
    /// The local part of `xsi:type`, whatever its prefix; empty when there is none.
    pub(super) xsi_type: String,
    /// The attribute `type` of no namespace, which names the kind of a managed object.
    pub(super) kind: String,
    pub(super) text: String,
    pub(super) children: Vec<Element>,
}

impl Element {
    /// The first child of this local name.
    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// All children of this local name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// How many elements it is, itself included.
    fn size(&self) -> usize {
        1 + self.children.iter().map(Self::size).sum::<usize>()
    }

    /// Whether this is that element of that namespace.
    pub(super) fn is(&self, namespace: &str, name: &str) -> bool {
        self.namespace == namespace && self.name == name
    }

    /// The text of the first child of this name, without the space around it; empty when there is none.
    pub(super) fn text_of(&self, name: &str) -> String {
        self.child(name).map(|child| child.text.trim().to_owned()).unwrap_or_default()
    }
}

/// Reads a document. The error is a phrase for people.
pub(super) fn parse(text: &str) -> Result<Element, String> {
    parse_each(text, "", &mut |_| {})
}

/// The same, but elements of this local name are handed over one by one as they end, and are not kept: a long list takes no more
/// memory than its longest item.
pub(super) fn parse_each(text: &str, name: &str, each: &mut dyn FnMut(Element)) -> Result<Element, String> {
    let mut reader = NsReader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut open: Vec<Element> = vec![];
    let mut kept = 0;
    loop {
        let (namespace, event) = reader.read_resolved_event().map_err(|error| format!("it is not XML ({error})"))?;
        match event {
            Event::Start(start) => {
                if open.len() == MAX_DEPTH {
                    return Err(format!("it is nested deeper than {MAX_DEPTH} elements"));
                }
                kept += 1;
                if kept > MAX_ELEMENTS {
                    return Err(format!("it has more than {MAX_ELEMENTS} elements"));
                }
                let namespace = match namespace {
                    ResolveResult::Bound(namespace) => known(namespace.into_inner()),
                    ResolveResult::Unbound => "",
                    ResolveResult::Unknown(_) => return Err("it uses a namespace prefix that it does not declare".to_owned()),
                };
                let mut element = Element {
                    namespace,
                    name: start.local_name().into_inner().to_owned(),
                    ..Element::default()
                };
                for attribute in start.attributes() {
                    let attribute = attribute.map_err(|error| format!("it has a bad attribute ({error})"))?;
                    let (namespace, name) = reader.resolver().resolve_attribute(attribute.key);
                    if name.into_inner() != "type" {
                        continue;
                    }
                    let value = attribute
                        .normalized_value(quick_xml::XmlVersion::Implicit1_0)
                        .map_err(|error| format!("it has a bad attribute ({error})"))?;
                    allowed(&value)?;
                    match namespace {
                        ResolveResult::Bound(namespace) if namespace.into_inner() == XSI => {
                            value.rsplit(':').next().unwrap_or_default().clone_into(&mut element.xsi_type);
                        }
                        ResolveResult::Unbound => element.kind = value.into_owned(),
                        _ => {}
                    }
                }
                open.push(element);
            }
            Event::End(_) => {
                let done = open.pop().ok_or("it closes an element that is not open")?;
                match open.last_mut() {
                    Some(_) if done.name == name => {
                        kept -= done.size();
                        each(done);
                    }
                    Some(parent) => parent.children.push(done),
                    None => return Ok(done),
                }
            }
            Event::Text(part) => push(&mut open, &part)?,
            Event::CData(part) => push(&mut open, &part)?,
            Event::GeneralRef(reference) => {
                let character = reference
                    .resolve_char_ref()
                    .map_err(|error| format!("it refers to no character ({error})"))?;
                match (character, resolve_predefined_entity(&reference)) {
                    (Some(character), _) => push(&mut open, character.encode_utf8(&mut [0; 4]))?,
                    (None, Some(text)) => push(&mut open, text)?,
                    (None, None) => return Err("it refers to an entity that XML does not define".to_owned()),
                }
            }
            Event::DocType(_) => return Err("it declares a DOCTYPE, which SOAP forbids".to_owned()),
            Event::Eof => return Err("it ends in the middle".to_owned()),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

/// The namespace as it is known here.
fn known(namespace: &str) -> &'static str {
    NAMESPACES.into_iter().find(|known| *known == namespace).unwrap_or(OTHER)
}

/// Whether XML 1.0 has the character at all, also as a reference: most control characters it has not.
pub(super) fn is_character(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Control characters would be commands to a terminal that shows them.
fn allowed(text: &str) -> Result<(), String> {
    match text.chars().find(|c| !is_character(*c)) {
        Some(c) => Err(format!("it contains the character U+{:04X}, which XML forbids", u32::from(c))),
        None => Ok(()),
    }
}

fn push(open: &mut [Element], text: &str) -> Result<(), String> {
    allowed(text)?;
    match open.last_mut() {
        Some(element) => element.text.push_str(text),
        None if text.trim().is_empty() => {}
        None => return Err("it has text outside of any element".to_owned()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(parse("<a type='1' type='2'/>").expect_err("twice").contains("attribute"));
    }

    #[test]
    fn xml_parse_each_list_items_are_streamed() {
        let mut seen = vec![];
        let tree = parse_each("<r><o>1</o><token>t</token><o>2</o></r>", "o", &mut |item| seen.push(item.text)).expect("XML");
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
        for (text, reason) in [
            ("", "ends in the middle"),
            ("hello", "outside"),
            ("<a><b></a>", "not XML"),
            ("<a><b>", "ends in the middle"),
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
            (&many, "more than 50000 elements"),
            (&in_an_item, "more than 50000 elements"),
            (&deep, "deeper"),
        ] {
            let error = parse_each(text, "o", &mut |_| {}).expect_err(reason);
            assert!(error.contains(reason), "{error} does not say {reason:?}");
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
        let mut seen = 0;
        parse_each(&text, "o", &mut |_| seen += 1).expect("XML");
        assert_eq!(seen, 2 * MAX_ELEMENTS);
    }
}
