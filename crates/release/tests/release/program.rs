// SPDX-License-Identifier: Apache-2.0
//! Test helper: builds a minimal static ELF program of about a hundred bytes that prints a line and ends.

pub const SAYS: &str = "vdo-operator stand-in\n";

/// A static ELF program for `amd64` or `arm64`.
pub fn stand_in(architecture: &str) -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    let length = u32::try_from(SAYS.len()).expect("a short text");
    let (machine, mut code): (u16, Vec<u8>) = match architecture {
        "amd64" => {
            let mut code = vec![0xb8, 1, 0, 0, 0, 0xbf, 1, 0, 0, 0]; // eax = write, edi = stdout
            code.extend([0x48, 0x8d, 0x35, 16, 0, 0, 0]); // rsi = the text, behind the code
            code.push(0xba); // edx = its length
            code.extend(length.to_le_bytes());
            code.extend([0x0f, 0x05, 0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05]); // call; eax = exit, edi = 0; call
            (62, code)
        }
        _ => {
            let words: [u32; 8] = [
                0xd280_0020,               // x0 = stdout
                0x1000_00e1,               // x1 = the text, behind the code
                0xd280_0002 | length << 5, // x2 = its length
                0xd280_0808,               // x8 = write
                0xd400_0001,               // call
                0xd280_0000,               // x0 = 0
                0xd280_0ba8,               // x8 = exit
                0xd400_0001,               // call
            ];
            (183, words.into_iter().flat_map(u32::to_le_bytes).collect())
        }
    };
    code.extend(SAYS.as_bytes());
    let size = HEADERS + code.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend(2_u16.to_le_bytes()); // a program
    file.extend(machine.to_le_bytes());
    file.extend(1_u32.to_le_bytes());
    for word in [BASE + HEADERS, 64, 0] {
        file.extend(word.to_le_bytes()); // entry, program headers, no sections
    }
    file.extend(0_u32.to_le_bytes());
    for half in [64_u16, 56, 1, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    for word in [1_u32, 5] {
        file.extend(word.to_le_bytes()); // load it, readable and executable
    }
    for word in [0, BASE, BASE, size, size, 0x1000] {
        file.extend(word.to_le_bytes());
    }
    file.extend(code);
    file
}
