//! set_mempolicy(2) and get_mempolicy(2): from which NUMA nodes the calling thread, and what it
//! starts, takes memory.

use std::io;

/// Most nodes that are asked for: more than any kernel is built for (`MAX_NUMNODES`).
const NODES: usize = 1024;
const WORDS: usize = NODES / 64;
/// The kernel takes one more than it reads bits (mm/mempolicy.c, `get_nodes`).
const NODES_ARG: libc::c_ulong = NODES as libc::c_ulong + 1;
/// Of these nodes alone (include/uapi/linux/mempolicy.h).
const MPOL_BIND: libc::c_int = 2;

/// Takes memory from these nodes alone, from now on.
///
/// # Errors
/// EINVAL for nodes without memory or not allowed, ENOSYS where the kernel has no NUMA.
pub fn bind_memory(nodes: &[u32]) -> io::Result<()> {
    let mut mask = [0u64; WORDS];
    for &node in nodes {
        let word = mask.get_mut(node as usize / 64).ok_or(io::ErrorKind::InvalidInput)?;
        *word |= 1 << (node % 64);
    }
    // SAFETY: the kernel reads as many bits as `mask` has, which outlives the call.
    let result =
        unsafe { libc::syscall(libc::SYS_set_mempolicy, MPOL_BIND, mask.as_ptr(), NODES_ARG) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The nodes that the calling thread is bound to; `None`: it is not.
///
/// # Errors
/// ENOSYS where the kernel has no NUMA.
pub fn memory_is_bound_to() -> io::Result<Option<Vec<u32>>> {
    let (mut mode, mut mask) = (0 as libc::c_int, [0u64; WORDS]);
    // SAFETY: the kernel writes a number and as many bits as `mask` has; both outlive the call.
    let result = unsafe {
        let (address, flags) = (std::ptr::null::<u8>(), 0 as libc::c_ulong);
        libc::syscall(
            libc::SYS_get_mempolicy,
            &raw mut mode,
            mask.as_mut_ptr(),
            NODES_ARG,
            address,
            flags,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let has = |node: &u32| mask[*node as usize / 64] & (1 << (node % 64)) != 0;
    Ok((mode == MPOL_BIND).then(|| (0..NODES as u32).filter(has).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_bound_and_its_maker_is_not() {
        let thread = std::thread::spawn(|| {
            let set = bind_memory(&[0]);
            (set.is_ok(), memory_is_bound_to().ok().flatten())
        });
        // A kernel without NUMA, or a container that forbids it, refuses both.
        match thread.join().unwrap() {
            (true, bound) => assert_eq!(bound, Some(vec![0])),
            (false, bound) => assert_eq!(bound, None),
        }
        assert!(!matches!(memory_is_bound_to(), Ok(Some(_))));
    }

    #[test]
    fn a_node_that_is_not_there_is_refused() {
        for nodes in [&[1023][..], &[5000], &[]] {
            assert!(std::thread::spawn(|| bind_memory(nodes).is_err()).join().unwrap());
        }
    }
}
