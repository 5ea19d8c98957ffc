// SPDX-License-Identifier: MIT
// Written by rust/bind from the headers. Do not edit.

pub const PRUDENCE_CACHE_DESTRUCT_SOON: c_uint = 2;
pub const PRUDENCE_CACHE_HIDDEN_POINTERS: c_uint = 16;
pub const PRUDENCE_CACHE_TYPESAFE: c_uint = 1;
pub const PRUDENCE_DOMAIN_EXTERNAL: c_uint = 5;
pub const PRUDENCE_DOMAIN_HAZARD: c_uint = 6;
pub const PRUDENCE_DOMAIN_MANUAL: c_uint = 2;
pub const PRUDENCE_DOMAIN_MEMB: c_uint = 0;
pub const PRUDENCE_DOMAIN_QSBR: c_uint = 1;
pub const PRUDENCE_DOMAIN_SET: c_uint = 4;
pub const PRUDENCE_DOMAIN_SRCU: c_uint = 3;
pub const PRUDENCE_HASH_FIXED: c_uint = 1;
pub const PRUDENCE_HASH_VALUES_BYTES: c_uint = 2;
pub const PRUDENCE_MAP_BYTES: c_uint = 1;
pub const PRUDENCE_MAP_VALUES_BYTES: c_uint = 1;
pub const PRUDENCE_OBJECT_CACHED: c_uint = 1;
pub const PRUDENCE_OBJECT_FREE: c_uint = 3;
pub const PRUDENCE_OBJECT_LATENT: c_uint = 2;
pub const PRUDENCE_OBJECT_LIVE: c_uint = 0;
pub const PRUDENCE_OBJECT_RESTING: c_uint = 4;
pub const PRUDENCE_ROUTES_IPV4: c_uint = 0;
pub const PRUDENCE_ROUTES_IPV6: c_uint = 1;
pub const PRUDENCE_STATS_JSON: c_uint = 1;
pub const PRUDENCE_STATS_TEXT: c_uint = 0;
pub const PRUDENCE_WAIT_BATCH: c_uint = 1;
pub const PRUDENCE_WAIT_GRACE_PERIOD: c_uint = 2;
pub const PRUDENCE_WAIT_MERGE: c_uint = 3;
pub const PRUDENCE_WAIT_NONE: c_uint = 0;

#[repr(C)]
pub struct prudence_cache {
    _private: [u8; 0],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_cache_attr {
    pub size: usize,
    pub alignment: usize,
    pub flags: c_uint,
    pub reserved: c_uint,
    pub constructor: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    pub context: *mut c_void,
    pub domain: *mut prudence_domain,
    pub object_cache_bytes: usize,
    pub destructor: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_cache_stats {
    pub name: [c_char; 32],
    pub object_size: usize,
    pub object_stride: usize,
    pub slab_size: usize,
    pub object_cache_size: usize,
    pub allocations: u64,
    pub hits: u64,
    pub hits_after_merge: u64,
    pub frees: u64,
    pub deferred_frees: u64,
    pub refills: u64,
    pub refilled_objects: u64,
    pub flushes: u64,
    pub flushed_objects: u64,
    pub object_cache_churns: u64,
    pub grows: u64,
    pub shrinks: u64,
    pub slab_churns: u64,
    pub merges: u64,
    pub merged_objects: u64,
    pub preflushed_objects: u64,
    pub overflowed_objects: u64,
    pub premoved_slabs: u64,
    pub busy_bypasses: u64,
    pub remote_drains: u64,
    pub pressure_waits: u64,
    pub slabs_now: u64,
    pub slabs_peak: u64,
    pub objects_live: u64,
    pub objects_latent: u64,
    pub objects_cached: u64,
    pub bytes_latent: u64,
    pub total_fragmentation: f64,
    pub bytes_cached: u64,
}

#[repr(C)]
pub struct prudence_counter {
    _private: [u8; 0],
}

#[repr(C)]
pub struct prudence_domain {
    _private: [u8; 0],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_domain_attr {
    pub size: usize,
    pub flags: c_uint,
    pub reserved: c_uint,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_domain_ops {
    pub size: usize,
    pub start_poll: Option<unsafe extern "C" fn(*mut c_void) -> u64>,
    pub poll_state: Option<unsafe extern "C" fn(*mut c_void, u64) -> bool>,
    pub synchronize: Option<unsafe extern "C" fn(*mut c_void)>,
    pub read_lock_held: Option<unsafe extern "C" fn(*mut c_void) -> bool>,
    pub thread_starts: Option<unsafe extern "C" fn(*mut c_void)>,
    pub thread_ends: Option<unsafe extern "C" fn(*mut c_void)>,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_domain_stats {
    pub name: [c_char; 32],
    pub kind: [c_char; 16],
    pub users: u64,
    pub readers: u64,
    pub grace_periods: u64,
    pub scans: u64,
    pub membarriers: u64,
    pub mode_switches: u64,
    pub stalls: u64,
    pub bytes_called: u64,
    pub readers_inside: u64,
    pub longest_inside_ns: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_gp_full_t {
    pub private_cookie: prudence_gp_t,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_gp_t {
    pub private_value: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_hash {
    pub view: usize,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_hash_attr {
    pub size: usize,
    pub buckets: u64,
    pub buckets_most: u64,
    pub flags: c_uint,
    pub reserved: c_uint,
    pub domain: *mut prudence_domain,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_hash_name {
    pub node: prudence_hash_node,
    pub change: usize,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_hash_node {
    pub next: usize,
    pub hash: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_hash_secret {
    pub words: [u64; 2],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_hash_stats {
    pub objects: u64,
    pub buckets: u64,
    pub grows: u64,
    pub shrinks: u64,
    pub refused: u64,
    pub moving: u64,
    pub bytes_live: u64,
    pub bytes_latent: u64,
}

#[repr(C)]
pub struct prudence_hash_values {
    _private: [u8; 0],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_hash_values_attr {
    pub size: usize,
    pub buckets: u64,
    pub buckets_most: u64,
    pub flags: c_uint,
    pub reserved: c_uint,
    pub domain: *mut prudence_domain,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_hash_values_walk {
    pub key: u64,
    pub bytes: *const c_void,
    pub length: usize,
    pub walk: prudence_hash_walk,
    pub strings: bool,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_hash_walk {
    pub table: *const prudence_hash,
    pub from: u64,
    pub node: *const prudence_hash_node,
    pub link: usize,
    pub order: c_uint,
    pub over: bool,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_hazard {
    pub name: *const c_void,
    pub fenced: u32,
    pub reserved: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_hazard_head {
    pub next: *mut prudence_hazard_head,
    pub object: *const c_void,
    pub size: usize,
    pub func: Option<unsafe extern "C" fn(*mut prudence_hazard_head)>,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_head {
    pub next: *mut prudence_head,
    pub func: Option<unsafe extern "C" fn(*mut prudence_head)>,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_heap_object {
    pub address: *const c_void,
    pub size: u64,
    pub state: u32,
    pub wait: u32,
    pub cookie: u64,
    pub cpu: i32,
    pub reserved: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_heap_slab {
    pub cache: *const prudence_cache,
    pub cache_name: [c_char; 32],
    pub domain: [c_char; 32],
    pub pages: *const c_void,
    pub bytes: u64,
    pub object_size: u64,
    pub object_stride: u64,
    pub node: u64,
    pub is_large: u64,
    pub objects: u64,
    pub live: u64,
    pub cached: u64,
    pub latent: u64,
    pub free: u64,
    pub resting: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_hlist_head {
    pub first: *mut prudence_hlist_node,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_hlist_node {
    pub next: *mut prudence_hlist_node,
    pub pprev: *mut *mut prudence_hlist_node,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_id_table {
    pub view: usize,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_id_table_attr {
    pub size: usize,
    pub ids: u32,
    pub ids_most: u32,
    pub domain: *mut prudence_domain,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_id_table_stats {
    pub objects: u64,
    pub slots: u64,
    pub grows: u64,
    pub bytes_live: u64,
    pub bytes_latent: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_id_table_walk {
    pub id: u32,
    pub table: *const prudence_id_table,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_kick {
    pub size: usize,
    pub function: Option<unsafe extern "C" fn(*mut c_void)>,
    pub argument: *mut c_void,
    pub after: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_list {
    pub next: *mut prudence_list,
    pub prev: *mut prudence_list,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_lockfree_hash {
    pub view: usize,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_lockfree_hash_attr {
    pub size: usize,
    pub buckets: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_lockfree_hash_stats {
    pub objects: u64,
    pub removed: u64,
    pub longest: u64,
    pub buckets: u64,
    pub bytes_live: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_lockfree_hash_walk {
    pub table: *const prudence_lockfree_hash,
    pub bucket: u64,
    pub link: usize,
}

#[repr(C)]
pub struct prudence_log {
    _private: [u8; 0],
}

#[repr(C)]
pub struct prudence_map {
    _private: [u8; 0],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_map_attr {
    pub size: usize,
    pub flags: c_uint,
    pub reserved: c_uint,
    pub domain: *mut prudence_domain,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_map_bytes {
    pub node: prudence_map_node,
    pub length: usize,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_map_node {
    pub key: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_map_stats {
    pub objects: u64,
    pub nodes: u64,
    pub replaced: u64,
    pub bytes_live: u64,
    pub bytes_latent: u64,
}

#[repr(C)]
pub struct prudence_map_values {
    _private: [u8; 0],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_map_values_attr {
    pub size: usize,
    pub flags: c_uint,
    pub reserved: c_uint,
    pub domain: *mut prudence_domain,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_map_walk {
    pub map: *const prudence_map,
    pub next: c_uint,
    pub count: c_uint,
    pub objects: [*mut prudence_map_node; 32],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_reader {
    pub word: u64,
    pub entries: u64,
    pub domain: *const prudence_domain,
    pub owner: *const c_void,
    pub attention: i32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_reader_stats {
    pub thread_name: [c_char; 16],
    pub domain: [c_char; 32],
    pub thread: i64,
    pub nesting: u64,
    pub inside_ns: u64,
    pub grace_periods_begun: u64,
    pub frame_count: u64,
    pub frames: [*mut c_void; 32],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_ref {
    pub count: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_routes {
    pub index: usize,
    pub shortcuts: usize,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_routes_attr {
    pub size: usize,
    pub family: c_uint,
    pub reserved: c_uint,
    pub prefixes: u64,
    pub domain: *mut prudence_domain,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_routes_prefix {
    pub address: [c_uchar; 16],
    pub length: c_uint,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_routes_stats {
    pub prefixes: u64,
    pub nodes: u64,
    pub index_bits: u64,
    pub refused: u64,
    pub bytes_live: u64,
    pub bytes_latent: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_routes_walk {
    pub prefix: prudence_routes_prefix,
    pub within: prudence_routes_prefix,
    pub table: *const prudence_routes,
    pub begun: bool,
}

#[repr(C)]
pub struct prudence_sizes {
    _private: [u8; 0],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_stack {
    pub top: *mut prudence_stack_node,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_stack_node {
    pub below: *mut prudence_stack_node,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_stall {
    pub size: usize,
    pub domain: *const c_char,
    pub thread_name: *const c_char,
    pub thread: c_int,
    pub nanoseconds: u64,
    pub frames: *const *mut c_void,
    pub frame_count: c_uint,
    pub object: *const c_void,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_stats {
    pub caches: u64,
    pub allocations: u64,
    pub hits: u64,
    pub hits_after_merge: u64,
    pub frees: u64,
    pub deferred_frees: u64,
    pub object_cache_churns: u64,
    pub slab_churns: u64,
    pub merges: u64,
    pub slabs_now: u64,
    pub slab_bytes: u64,
    pub slab_bytes_peak: u64,
    pub retained_bytes: u64,
    pub metadata_bytes: u64,
    pub objects_live: u64,
    pub objects_latent: u64,
    pub bytes_latent: u64,
    pub bytes_latent_peak: u64,
    pub limit: u64,
    pub latent_limit: u64,
    pub pressure_waits: u64,
    pub throttle_waits: u64,
    pub throttle_expiries: u64,
    pub latent_overruns: u64,
    pub call_bytes: u64,
    pub call_waits: u64,
    pub call_expiries: u64,
    pub call_overruns: u64,
    pub grace_periods: u64,
    pub grace_period_scans: u64,
    pub membarriers: u64,
    pub mode_switches: u64,
    pub stalls: u64,
    pub readers: u64,
    pub percpu: [c_char; 16],
    pub readers_mode: [c_char; 16],
    pub membarrier: [c_char; 16],
    pub bytes_cached: u64,
    pub cache_per_cpu: u64,
    pub cache_total: u64,
    pub percpu_reason: [c_char; 48],
    pub doubles_passed_over: u64,
    pub latent_ceiling: u64,
    pub latent_limit_in_force: u64,
    pub latent_rises: u64,
    pub bytes_named: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_swap {
    pub object: *mut c_void,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct prudence_walk {
    pub after: [u64; 3],
}

#[repr(C)]
pub struct scm_clock {
    _private: [u8; 0],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct scm_mem_info {
    pub allocated: c_ulong,
    pub freed: c_ulong,
    pub overhead: c_ulong,
    pub num_alloc: c_ulong,
    pub num_freed: c_ulong,
    pub num_short_term: c_ulong,
    pub num_dates: c_ulong,
    pub num_expired: c_ulong,
    pub num_collected: c_ulong,
    pub threads: c_ulong,
}

#[repr(C)]
pub struct scm_region {
    _private: [u8; 0],
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct scm_region_info {
    pub regions: c_ulong,
    pub bytes: c_ulong,
}

/// Name, size and alignment of each structure above, as this compiler has them.
#[rustfmt::skip]
pub const SIZES: &[(&str, usize, usize)] = &[
    ("prudence_cache_attr", size_of::<prudence_cache_attr>(), align_of::<prudence_cache_attr>()),
    ("prudence_cache_stats", size_of::<prudence_cache_stats>(), align_of::<prudence_cache_stats>()),
    ("prudence_domain_attr", size_of::<prudence_domain_attr>(), align_of::<prudence_domain_attr>()),
    ("prudence_domain_ops", size_of::<prudence_domain_ops>(), align_of::<prudence_domain_ops>()),
    ("prudence_domain_stats", size_of::<prudence_domain_stats>(), align_of::<prudence_domain_stats>()),
    ("prudence_gp_full_t", size_of::<prudence_gp_full_t>(), align_of::<prudence_gp_full_t>()),
    ("prudence_gp_t", size_of::<prudence_gp_t>(), align_of::<prudence_gp_t>()),
    ("prudence_hash", size_of::<prudence_hash>(), align_of::<prudence_hash>()),
    ("prudence_hash_attr", size_of::<prudence_hash_attr>(), align_of::<prudence_hash_attr>()),
    ("prudence_hash_name", size_of::<prudence_hash_name>(), align_of::<prudence_hash_name>()),
    ("prudence_hash_node", size_of::<prudence_hash_node>(), align_of::<prudence_hash_node>()),
    ("prudence_hash_secret", size_of::<prudence_hash_secret>(), align_of::<prudence_hash_secret>()),
    ("prudence_hash_stats", size_of::<prudence_hash_stats>(), align_of::<prudence_hash_stats>()),
    ("prudence_hash_values_attr", size_of::<prudence_hash_values_attr>(), align_of::<prudence_hash_values_attr>()),
    ("prudence_hash_values_walk", size_of::<prudence_hash_values_walk>(), align_of::<prudence_hash_values_walk>()),
    ("prudence_hash_walk", size_of::<prudence_hash_walk>(), align_of::<prudence_hash_walk>()),
    ("prudence_hazard", size_of::<prudence_hazard>(), align_of::<prudence_hazard>()),
    ("prudence_hazard_head", size_of::<prudence_hazard_head>(), align_of::<prudence_hazard_head>()),
    ("prudence_head", size_of::<prudence_head>(), align_of::<prudence_head>()),
    ("prudence_heap_object", size_of::<prudence_heap_object>(), align_of::<prudence_heap_object>()),
    ("prudence_heap_slab", size_of::<prudence_heap_slab>(), align_of::<prudence_heap_slab>()),
    ("prudence_hlist_head", size_of::<prudence_hlist_head>(), align_of::<prudence_hlist_head>()),
    ("prudence_hlist_node", size_of::<prudence_hlist_node>(), align_of::<prudence_hlist_node>()),
    ("prudence_id_table", size_of::<prudence_id_table>(), align_of::<prudence_id_table>()),
    ("prudence_id_table_attr", size_of::<prudence_id_table_attr>(), align_of::<prudence_id_table_attr>()),
    ("prudence_id_table_stats", size_of::<prudence_id_table_stats>(), align_of::<prudence_id_table_stats>()),
    ("prudence_id_table_walk", size_of::<prudence_id_table_walk>(), align_of::<prudence_id_table_walk>()),
    ("prudence_kick", size_of::<prudence_kick>(), align_of::<prudence_kick>()),
    ("prudence_list", size_of::<prudence_list>(), align_of::<prudence_list>()),
    ("prudence_lockfree_hash", size_of::<prudence_lockfree_hash>(), align_of::<prudence_lockfree_hash>()),
    ("prudence_lockfree_hash_attr", size_of::<prudence_lockfree_hash_attr>(), align_of::<prudence_lockfree_hash_attr>()),
    ("prudence_lockfree_hash_stats", size_of::<prudence_lockfree_hash_stats>(), align_of::<prudence_lockfree_hash_stats>()),
    ("prudence_lockfree_hash_walk", size_of::<prudence_lockfree_hash_walk>(), align_of::<prudence_lockfree_hash_walk>()),
    ("prudence_map_attr", size_of::<prudence_map_attr>(), align_of::<prudence_map_attr>()),
    ("prudence_map_bytes", size_of::<prudence_map_bytes>(), align_of::<prudence_map_bytes>()),
    ("prudence_map_node", size_of::<prudence_map_node>(), align_of::<prudence_map_node>()),
    ("prudence_map_stats", size_of::<prudence_map_stats>(), align_of::<prudence_map_stats>()),
    ("prudence_map_values_attr", size_of::<prudence_map_values_attr>(), align_of::<prudence_map_values_attr>()),
    ("prudence_map_walk", size_of::<prudence_map_walk>(), align_of::<prudence_map_walk>()),
    ("prudence_reader", size_of::<prudence_reader>(), align_of::<prudence_reader>()),
    ("prudence_reader_stats", size_of::<prudence_reader_stats>(), align_of::<prudence_reader_stats>()),
    ("prudence_ref", size_of::<prudence_ref>(), align_of::<prudence_ref>()),
    ("prudence_routes", size_of::<prudence_routes>(), align_of::<prudence_routes>()),
    ("prudence_routes_attr", size_of::<prudence_routes_attr>(), align_of::<prudence_routes_attr>()),
    ("prudence_routes_prefix", size_of::<prudence_routes_prefix>(), align_of::<prudence_routes_prefix>()),
    ("prudence_routes_stats", size_of::<prudence_routes_stats>(), align_of::<prudence_routes_stats>()),
    ("prudence_routes_walk", size_of::<prudence_routes_walk>(), align_of::<prudence_routes_walk>()),
    ("prudence_stack", size_of::<prudence_stack>(), align_of::<prudence_stack>()),
    ("prudence_stack_node", size_of::<prudence_stack_node>(), align_of::<prudence_stack_node>()),
    ("prudence_stall", size_of::<prudence_stall>(), align_of::<prudence_stall>()),
    ("prudence_stats", size_of::<prudence_stats>(), align_of::<prudence_stats>()),
    ("prudence_swap", size_of::<prudence_swap>(), align_of::<prudence_swap>()),
    ("prudence_walk", size_of::<prudence_walk>(), align_of::<prudence_walk>()),
    ("scm_mem_info", size_of::<scm_mem_info>(), align_of::<scm_mem_info>()),
    ("scm_region_info", size_of::<scm_region_info>(), align_of::<scm_region_info>()),
];

#[rustfmt::skip]
extern "C" {
    pub fn prudence_aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    pub fn prudence_aligned_realloc(object: *mut c_void, alignment: usize, size: usize) -> *mut c_void;
    pub fn prudence_alignof(type_: *const c_char) -> usize;
    pub fn prudence_assign_pointer_at(place: *mut *mut c_void, value: *mut c_void);
    pub fn prudence_barrier() -> c_int;
    pub fn prudence_barrier_nested() -> c_int;
    pub fn prudence_cache_alloc(cache: *mut prudence_cache) -> *mut c_void;
    pub fn prudence_cache_alloc_block(cache: *mut prudence_cache, size: usize, zeroed: *mut bool) -> *mut c_void;
    pub fn prudence_cache_alloc_bulk(cache: *mut prudence_cache, count: usize, objects: *mut *mut c_void) -> usize;
    pub fn prudence_cache_barrier(cache: *mut prudence_cache) -> c_int;
    pub fn prudence_cache_barrier_timed(cache: *mut prudence_cache, nanoseconds: u64) -> c_int;
    pub fn prudence_cache_create(name: *const c_char, object_size: usize, attr: *const prudence_cache_attr) -> *mut prudence_cache;
    pub fn prudence_cache_create_blocks(name: *const c_char, domain: *mut prudence_domain) -> *mut prudence_cache;
    pub fn prudence_cache_destroy(cache: *mut prudence_cache) -> c_int;
    pub fn prudence_cache_destroy_later(cache: *mut prudence_cache) -> c_int;
    pub fn prudence_cache_free(cache: *mut prudence_cache, object: *mut c_void);
    pub fn prudence_cache_free_bulk(cache: *mut prudence_cache, count: usize, objects: *mut *mut c_void);
    pub fn prudence_cache_free_deferred(cache: *mut prudence_cache, object: *mut c_void);
    pub fn prudence_cache_free_deferred_bulk(cache: *mut prudence_cache, count: usize, objects: *mut *mut c_void);
    pub fn prudence_cache_replace(cache: *mut prudence_cache, old: *mut c_void) -> *mut c_void;
    pub fn prudence_cache_replace_bulk(cache: *mut prudence_cache, count: usize, objects: *mut *mut c_void) -> usize;
    pub fn prudence_cache_shrink(cache: *mut prudence_cache) -> usize;
    pub fn prudence_cache_stats_sized(cache: *mut prudence_cache, stats: *mut prudence_cache_stats, size: usize) -> c_int;
    pub fn prudence_call(head: *mut prudence_head, func: Option<unsafe extern "C" fn(*mut prudence_head)>);
    pub fn prudence_calloc(count: usize, size: usize) -> *mut c_void;
    pub fn prudence_check_reader(object: *const c_void);
    pub fn prudence_counter_add(counter: *mut prudence_counter, number: i64);
    pub fn prudence_counter_create() -> *mut prudence_counter;
    pub fn prudence_counter_destroy(counter: *mut prudence_counter) -> c_int;
    pub fn prudence_counter_sum(counter: *const prudence_counter) -> i64;
    pub fn prudence_default_domain() -> *mut prudence_domain;
    pub fn prudence_dereference_at(place: *const *mut c_void) -> *mut c_void;
    pub fn prudence_domain_barrier(domain: *mut prudence_domain) -> c_int;
    pub fn prudence_domain_barrier_timed(domain: *mut prudence_domain, nanoseconds: u64) -> c_int;
    pub fn prudence_domain_call(domain: *mut prudence_domain, head: *mut prudence_head, func: Option<unsafe extern "C" fn(*mut prudence_head)>);
    pub fn prudence_domain_call_around(domain: *mut prudence_domain, most: c_uint, begin: Option<unsafe extern "C" fn(*mut c_void)>, end: Option<unsafe extern "C" fn(*mut c_void)>, argument: *mut c_void) -> c_int;
    pub fn prudence_domain_cond_synchronize(domain: *mut prudence_domain, cookie: prudence_gp_t) -> c_int;
    pub fn prudence_domain_cond_synchronize_expedited(domain: *mut prudence_domain, cookie: prudence_gp_t) -> c_int;
    pub fn prudence_domain_cond_synchronize_expedited_full(domain: *mut prudence_domain, state: *const prudence_gp_full_t) -> c_int;
    pub fn prudence_domain_cond_synchronize_full(domain: *mut prudence_domain, state: *const prudence_gp_full_t) -> c_int;
    pub fn prudence_domain_create(name: *const c_char, kind: c_uint, attr: *const prudence_domain_attr) -> *mut prudence_domain;
    pub fn prudence_domain_create_external(name: *const c_char, ops: *const prudence_domain_ops, context: *mut c_void) -> *mut prudence_domain;
    pub fn prudence_domain_create_set(name: *const c_char, domains: *const *mut prudence_domain, count: c_uint) -> *mut prudence_domain;
    pub fn prudence_domain_destroy(domain: *mut prudence_domain) -> c_int;
    pub fn prudence_domain_free_deferred(domain: *mut prudence_domain, object: *mut c_void) -> bool;
    pub fn prudence_domain_get_completed(domain: *mut prudence_domain) -> prudence_gp_t;
    pub fn prudence_domain_get_completed_full(domain: *mut prudence_domain, state: *mut prudence_gp_full_t);
    pub fn prudence_domain_get_state(domain: *mut prudence_domain) -> prudence_gp_t;
    pub fn prudence_domain_get_state_full(domain: *mut prudence_domain, state: *mut prudence_gp_full_t);
    pub fn prudence_domain_kind_of(domain: *const prudence_domain) -> c_uint;
    pub fn prudence_domain_may_wait(domain: *mut prudence_domain, function: *const c_char, of: *const c_char, name: *const c_char, caller: *mut c_void) -> c_int;
    pub fn prudence_domain_poll_state(domain: *mut prudence_domain, cookie: prudence_gp_t) -> bool;
    pub fn prudence_domain_poll_state_full(domain: *mut prudence_domain, state: *const prudence_gp_full_t) -> bool;
    pub fn prudence_domain_read_lock(domain: *mut prudence_domain);
    pub fn prudence_domain_read_lock_held(domain: *mut prudence_domain) -> bool;
    pub fn prudence_domain_read_unlock(domain: *mut prudence_domain);
    pub fn prudence_domain_start_poll(domain: *mut prudence_domain) -> prudence_gp_t;
    pub fn prudence_domain_start_poll_expedited(domain: *mut prudence_domain) -> prudence_gp_t;
    pub fn prudence_domain_start_poll_expedited_full(domain: *mut prudence_domain, state: *mut prudence_gp_full_t);
    pub fn prudence_domain_start_poll_full(domain: *mut prudence_domain, state: *mut prudence_gp_full_t);
    pub fn prudence_domain_stats_sized(domain: *mut prudence_domain, stats: *mut prudence_domain_stats, size: usize) -> c_int;
    pub fn prudence_domain_synchronize(domain: *mut prudence_domain) -> c_int;
    pub fn prudence_domain_synchronize_expedited(domain: *mut prudence_domain) -> c_int;
    pub fn prudence_dump(fd: c_int) -> c_int;
    pub fn prudence_epoch_is_pinned(self_: *const prudence_reader) -> bool;
    pub fn prudence_epoch_misuse(self_: *const prudence_reader, function: *const c_char);
    pub fn prudence_epoch_newest(domain: *const prudence_domain) -> u64;
    pub fn prudence_epoch_outlive();
    pub fn prudence_epoch_pin(self_: *mut prudence_reader);
    pub fn prudence_epoch_pinned(self_: *const prudence_reader) -> u64;
    pub fn prudence_epoch_record(domain: *mut prudence_domain) -> *mut prudence_reader;
    pub fn prudence_epoch_repin(self_: *mut prudence_reader) -> bool;
    pub fn prudence_epoch_try_advance(domain: *mut prudence_domain, behind: *mut c_int) -> bool;
    pub fn prudence_epoch_unpin(self_: *mut prudence_reader);
    pub fn prudence_free(object: *mut c_void);
    pub fn prudence_free_deferred(object: *mut c_void);
    pub fn prudence_free_sized(object: *mut c_void, size: usize);
    pub fn prudence_gp_cond_synchronize(cookie: prudence_gp_t);
    pub fn prudence_gp_cond_synchronize_expedited(cookie: prudence_gp_t);
    pub fn prudence_gp_cond_synchronize_expedited_full(state: *const prudence_gp_full_t);
    pub fn prudence_gp_cond_synchronize_full(state: *const prudence_gp_full_t);
    pub fn prudence_gp_get_completed() -> prudence_gp_t;
    pub fn prudence_gp_get_completed_full(state: *mut prudence_gp_full_t);
    pub fn prudence_gp_get_state() -> prudence_gp_t;
    pub fn prudence_gp_get_state_full(state: *mut prudence_gp_full_t);
    pub fn prudence_gp_poll_state(cookie: prudence_gp_t) -> bool;
    pub fn prudence_gp_poll_state_full(state: *const prudence_gp_full_t) -> bool;
    pub fn prudence_gp_same_state(a: prudence_gp_t, b: prudence_gp_t) -> bool;
    pub fn prudence_gp_same_state_full(a: *const prudence_gp_full_t, b: *const prudence_gp_full_t) -> bool;
    pub fn prudence_gp_start_poll() -> prudence_gp_t;
    pub fn prudence_gp_start_poll_expedited() -> prudence_gp_t;
    pub fn prudence_gp_start_poll_expedited_full(state: *mut prudence_gp_full_t);
    pub fn prudence_gp_start_poll_full(state: *mut prudence_gp_full_t);
    pub fn prudence_hash_add(table: *mut prudence_hash, hash: u64, match_: Option<unsafe extern "C" fn(*const prudence_hash_node, *const c_void) -> bool>, key: *const c_void, node: *mut prudence_hash_node, there: *mut *mut prudence_hash_node) -> c_int;
    pub fn prudence_hash_add_duplicate(table: *mut prudence_hash, hash: u64, node: *mut prudence_hash_node) -> c_int;
    pub fn prudence_hash_bytes(secret: *const prudence_hash_secret, bytes: *const c_void, length: usize) -> u64;
    pub fn prudence_hash_count(table: *const prudence_hash) -> u64;
    pub fn prudence_hash_create(name: *const c_char, attr: *const prudence_hash_attr) -> *mut prudence_hash;
    pub fn prudence_hash_destroy(table: *mut prudence_hash, dispose: Option<unsafe extern "C" fn(*mut prudence_hash_node, *mut c_void)>, argument: *mut c_void) -> c_int;
    pub fn prudence_hash_draw_secret(secret: *mut prudence_hash_secret);
    pub fn prudence_hash_exchange(of_a: *mut prudence_hash, a: *mut prudence_hash_name, fresh_a: *mut prudence_hash_name, of_b: *mut prudence_hash, b: *mut prudence_hash_name, fresh_b: *mut prudence_hash_name) -> c_int;
    pub fn prudence_hash_first(walk: *mut prudence_hash_walk, table: *const prudence_hash) -> *mut prudence_hash_node;
    pub fn prudence_hash_lookup(table: *const prudence_hash, hash: u64, match_: Option<unsafe extern "C" fn(*const prudence_hash_node, *const c_void) -> bool>, key: *const c_void) -> *mut prudence_hash_node;
    pub fn prudence_hash_lookup_name(table: *const prudence_hash, hash: u64, match_: Option<unsafe extern "C" fn(*const prudence_hash_node, *const c_void) -> bool>, key: *const c_void) -> *mut prudence_hash_name;
    pub fn prudence_hash_lookup_slow(table: *const prudence_hash, hash: u64, match_: Option<unsafe extern "C" fn(*const prudence_hash_node, *const c_void) -> bool>, key: *const c_void) -> *mut prudence_hash_node;
    pub fn prudence_hash_mix(key: u64) -> u64;
    pub fn prudence_hash_name_init(name: *mut prudence_hash_name);
    pub fn prudence_hash_name_is_there(name: *const prudence_hash_name) -> bool;
    pub fn prudence_hash_next(walk: *mut prudence_hash_walk) -> *mut prudence_hash_node;
    pub fn prudence_hash_next_duplicate(node: *const prudence_hash_node, match_: Option<unsafe extern "C" fn(*const prudence_hash_node, *const c_void) -> bool>, key: *const c_void) -> *mut prudence_hash_node;
    pub fn prudence_hash_number(secret: *const prudence_hash_secret, number: u64) -> u64;
    pub fn prudence_hash_put(table: *mut prudence_hash, hash: u64, match_: Option<unsafe extern "C" fn(*const prudence_hash_node, *const c_void) -> bool>, key: *const c_void, node: *mut prudence_hash_node, old: *mut *mut prudence_hash_node) -> c_int;
    pub fn prudence_hash_remove(table: *mut prudence_hash, node: *mut prudence_hash_node) -> c_int;
    pub fn prudence_hash_rename(from: *mut prudence_hash, old: *mut prudence_hash_name, to: *mut prudence_hash, hash: u64, match_: Option<unsafe extern "C" fn(*const prudence_hash_node, *const c_void) -> bool>, key: *const c_void, fresh: *mut prudence_hash_name) -> c_int;
    pub fn prudence_hash_rename_replace(from: *mut prudence_hash, old: *mut prudence_hash_name, to: *mut prudence_hash, hash: u64, match_: Option<unsafe extern "C" fn(*const prudence_hash_node, *const c_void) -> bool>, key: *const c_void, fresh: *mut prudence_hash_name, old_there: *mut *mut prudence_hash_name) -> c_int;
    pub fn prudence_hash_replace(table: *mut prudence_hash, old: *mut prudence_hash_node, fresh: *mut prudence_hash_node) -> c_int;
    pub fn prudence_hash_resize(table: *mut prudence_hash, buckets: u64) -> c_int;
    pub fn prudence_hash_stats_sized(table: *mut prudence_hash, stats: *mut prudence_hash_stats, size: usize) -> c_int;
    pub fn prudence_hash_values_add(table: *mut prudence_hash_values, key: u64, value: *mut c_void, there: *mut *mut c_void) -> c_int;
    pub fn prudence_hash_values_add_bytes(table: *mut prudence_hash_values, bytes: *const c_void, length: usize, value: *mut c_void, there: *mut *mut c_void) -> c_int;
    pub fn prudence_hash_values_count(table: *const prudence_hash_values) -> u64;
    pub fn prudence_hash_values_create(name: *const c_char, attr: *const prudence_hash_values_attr) -> *mut prudence_hash_values;
    pub fn prudence_hash_values_destroy(table: *mut prudence_hash_values, dispose: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>, argument: *mut c_void) -> c_int;
    pub fn prudence_hash_values_erase(table: *mut prudence_hash_values, key: u64, old: *mut *mut c_void) -> c_int;
    pub fn prudence_hash_values_erase_bytes(table: *mut prudence_hash_values, bytes: *const c_void, length: usize, old: *mut *mut c_void) -> c_int;
    pub fn prudence_hash_values_first(walk: *mut prudence_hash_values_walk, table: *const prudence_hash_values) -> *mut c_void;
    pub fn prudence_hash_values_get(table: *const prudence_hash_values, key: u64) -> *mut c_void;
    pub fn prudence_hash_values_get_bytes(table: *const prudence_hash_values, bytes: *const c_void, length: usize) -> *mut c_void;
    pub fn prudence_hash_values_next(walk: *mut prudence_hash_values_walk) -> *mut c_void;
    pub fn prudence_hash_values_put(table: *mut prudence_hash_values, key: u64, value: *mut c_void, old: *mut *mut c_void) -> c_int;
    pub fn prudence_hash_values_put_bytes(table: *mut prudence_hash_values, bytes: *const c_void, length: usize, value: *mut c_void, old: *mut *mut c_void) -> c_int;
    pub fn prudence_hash_values_replace(table: *mut prudence_hash_values, key: u64, old: *mut c_void, fresh: *mut c_void) -> c_int;
    pub fn prudence_hash_values_replace_bytes(table: *mut prudence_hash_values, bytes: *const c_void, length: usize, old: *mut c_void, fresh: *mut c_void) -> c_int;
    pub fn prudence_hash_values_stats_sized(table: *mut prudence_hash_values, stats: *mut prudence_hash_stats, size: usize) -> c_int;
    pub fn prudence_hazard_acquire() -> *mut prudence_hazard;
    pub fn prudence_hazard_acquire_movable() -> *mut prudence_hazard;
    pub fn prudence_hazard_acquire_movable_slow() -> *mut prudence_hazard;
    pub fn prudence_hazard_acquire_row(count: c_uint) -> *mut prudence_hazard;
    pub fn prudence_hazard_acquire_slow() -> *mut prudence_hazard;
    pub fn prudence_hazard_protect(hazard: *mut prudence_hazard, source: *const *mut c_void) -> *mut c_void;
    pub fn prudence_hazard_reclaim() -> usize;
    pub fn prudence_hazard_release(hazard: *mut prudence_hazard);
    pub fn prudence_hazard_release_slow(hazard: *mut prudence_hazard);
    pub fn prudence_hazard_reset(hazard: *mut prudence_hazard);
    pub fn prudence_hazard_retire(head: *mut prudence_hazard_head, object: *const c_void, size: usize, func: Option<unsafe extern "C" fn(*mut prudence_hazard_head)>);
    pub fn prudence_hazard_set(hazard: *mut prudence_hazard, object: *const c_void);
    pub fn prudence_hazard_try_protect(hazard: *mut prudence_hazard, pointer: *mut *mut c_void, source: *const *mut c_void) -> bool;
    pub fn prudence_heap_print(cache: *mut prudence_cache, file: *mut c_void, format: c_uint) -> c_int;
    pub fn prudence_heap_walk_sized(cache: *mut prudence_cache, visit: Option<unsafe extern "C" fn(*const prudence_heap_slab, *const prudence_heap_object, *mut c_void) -> c_int>, context: *mut c_void, slab_size: usize, object_size: usize) -> c_int;
    pub fn prudence_hlist_add_before_rcu(node: *mut prudence_hlist_node, next: *mut prudence_hlist_node);
    pub fn prudence_hlist_add_behind_rcu(node: *mut prudence_hlist_node, previous: *mut prudence_hlist_node);
    pub fn prudence_hlist_add_head_rcu(node: *mut prudence_hlist_node, head: *mut prudence_hlist_head);
    pub fn prudence_hlist_add_tail_rcu(node: *mut prudence_hlist_node, head: *mut prudence_hlist_head);
    pub fn prudence_hlist_del_init_rcu(node: *mut prudence_hlist_node);
    pub fn prudence_hlist_del_rcu(node: *mut prudence_hlist_node);
    pub fn prudence_hlist_empty(head: *const prudence_hlist_head) -> bool;
    pub fn prudence_hlist_first_rcu(head: *const prudence_hlist_head) -> *mut prudence_hlist_node;
    pub fn prudence_hlist_init(head: *mut prudence_hlist_head);
    pub fn prudence_hlist_next_rcu(node: *const prudence_hlist_node) -> *mut prudence_hlist_node;
    pub fn prudence_hlist_node_init(node: *mut prudence_hlist_node);
    pub fn prudence_hlist_replace_rcu(old: *mut prudence_hlist_node, fresh: *mut prudence_hlist_node);
    pub fn prudence_hlist_unhashed(node: *const prudence_hlist_node) -> bool;
    pub fn prudence_hlists_swap_heads_rcu(left: *mut prudence_hlist_head, right: *mut prudence_hlist_head);
    pub fn prudence_id_table_add(table: *mut prudence_id_table, object: *mut c_void, id: *mut u32) -> c_int;
    pub fn prudence_id_table_count(table: *const prudence_id_table) -> u64;
    pub fn prudence_id_table_create(name: *const c_char, attr: *const prudence_id_table_attr) -> *mut prudence_id_table;
    pub fn prudence_id_table_destroy(table: *mut prudence_id_table, dispose: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>, argument: *mut c_void) -> c_int;
    pub fn prudence_id_table_erase(table: *mut prudence_id_table, id: u32, old: *mut *mut c_void) -> c_int;
    pub fn prudence_id_table_first(walk: *mut prudence_id_table_walk, table: *const prudence_id_table) -> *mut c_void;
    pub fn prudence_id_table_first_from(walk: *mut prudence_id_table_walk, table: *const prudence_id_table, id: u32) -> *mut c_void;
    pub fn prudence_id_table_lookup(table: *const prudence_id_table, id: u32) -> *mut c_void;
    pub fn prudence_id_table_next(walk: *mut prudence_id_table_walk) -> *mut c_void;
    pub fn prudence_id_table_replace(table: *mut prudence_id_table, id: u32, object: *mut c_void, old: *mut *mut c_void) -> c_int;
    pub fn prudence_id_table_stats_sized(table: *mut prudence_id_table, stats: *mut prudence_id_table_stats, size: usize) -> c_int;
    pub fn prudence_is_reading() -> bool;
    pub fn prudence_kick_set(domain: *mut prudence_domain, kick: *const prudence_kick) -> c_int;
    pub fn prudence_latent_fits(bytes: usize) -> bool;
    pub fn prudence_list_add_rcu(link: *mut prudence_list, head: *mut prudence_list);
    pub fn prudence_list_add_tail_rcu(link: *mut prudence_list, head: *mut prudence_list);
    pub fn prudence_list_del_rcu(link: *mut prudence_list);
    pub fn prudence_list_empty(head: *const prudence_list) -> bool;
    pub fn prudence_list_first_link_rcu(head: *mut prudence_list) -> *mut prudence_list;
    pub fn prudence_list_init(head: *mut prudence_list);
    pub fn prudence_list_init_rcu(head: *mut prudence_list);
    pub fn prudence_list_next_rcu(link: *const prudence_list) -> *mut prudence_list;
    pub fn prudence_list_replace_rcu(old: *mut prudence_list, fresh: *mut prudence_list);
    pub fn prudence_list_splice_init_rcu(list: *mut prudence_list, head: *mut prudence_list, synchronize: Option<unsafe extern "C" fn()>);
    pub fn prudence_list_splice_tail_init_rcu(list: *mut prudence_list, head: *mut prudence_list, synchronize: Option<unsafe extern "C" fn()>);
    pub fn prudence_lockfree_hash_add(table: *mut prudence_lockfree_hash, hash: u64, match_: Option<unsafe extern "C" fn(*const prudence_hash_node, *const c_void) -> bool>, key: *const c_void, node: *mut prudence_hash_node, there: *mut *mut prudence_hash_node) -> c_int;
    pub fn prudence_lockfree_hash_add_duplicate(table: *mut prudence_lockfree_hash, hash: u64, node: *mut prudence_hash_node) -> c_int;
    pub fn prudence_lockfree_hash_create(name: *const c_char, attr: *const prudence_lockfree_hash_attr) -> *mut prudence_lockfree_hash;
    pub fn prudence_lockfree_hash_destroy(table: *mut prudence_lockfree_hash, dispose: Option<unsafe extern "C" fn(*mut prudence_hash_node, *mut c_void)>, argument: *mut c_void) -> c_int;
    pub fn prudence_lockfree_hash_first(walk: *mut prudence_lockfree_hash_walk, table: *const prudence_lockfree_hash) -> *mut prudence_hash_node;
    pub fn prudence_lockfree_hash_lookup(table: *const prudence_lockfree_hash, hash: u64, match_: Option<unsafe extern "C" fn(*const prudence_hash_node, *const c_void) -> bool>, key: *const c_void) -> *mut prudence_hash_node;
    pub fn prudence_lockfree_hash_next(walk: *mut prudence_lockfree_hash_walk) -> *mut prudence_hash_node;
    pub fn prudence_lockfree_hash_next_duplicate(node: *const prudence_hash_node, match_: Option<unsafe extern "C" fn(*const prudence_hash_node, *const c_void) -> bool>, key: *const c_void) -> *mut prudence_hash_node;
    pub fn prudence_lockfree_hash_put(table: *mut prudence_lockfree_hash, hash: u64, match_: Option<unsafe extern "C" fn(*const prudence_hash_node, *const c_void) -> bool>, key: *const c_void, node: *mut prudence_hash_node, old: *mut *mut prudence_hash_node) -> c_int;
    pub fn prudence_lockfree_hash_remove(table: *mut prudence_lockfree_hash, node: *mut prudence_hash_node) -> c_int;
    pub fn prudence_lockfree_hash_replace(table: *mut prudence_lockfree_hash, old: *mut prudence_hash_node, fresh: *mut prudence_hash_node) -> c_int;
    pub fn prudence_lockfree_hash_stats_sized(table: *const prudence_lockfree_hash, stats: *mut prudence_lockfree_hash_stats, size: usize) -> c_int;
    pub fn prudence_log_create(bytes: usize, domain: *mut prudence_domain) -> *mut prudence_log;
    pub fn prudence_log_destroy(log: *mut prudence_log) -> c_int;
    pub fn prudence_log_dropped(log: *const prudence_log) -> u64;
    pub fn prudence_log_flush(log: *mut prudence_log, write: Option<unsafe extern "C" fn(*mut c_void, *const c_void, usize)>, context: *mut c_void) -> c_int;
    pub fn prudence_log_reserve(log: *mut prudence_log, size: usize) -> *mut c_void;
    pub fn prudence_malloc(size: usize) -> *mut c_void;
    pub fn prudence_malloc_deletes() -> bool;
    pub fn prudence_manual_advance(domain: *mut prudence_domain);
    pub fn prudence_map_add(map: *mut prudence_map, node: *mut prudence_map_node, there: *mut *mut prudence_map_node) -> c_int;
    pub fn prudence_map_after(map: *const prudence_map, node: *const prudence_map_node) -> *mut prudence_map_node;
    pub fn prudence_map_before(map: *const prudence_map, node: *const prudence_map_node) -> *mut prudence_map_node;
    pub fn prudence_map_ceiling(map: *const prudence_map, key: u64) -> *mut prudence_map_node;
    pub fn prudence_map_ceiling_bytes(map: *const prudence_map, bytes: *const c_void, length: usize) -> *mut prudence_map_node;
    pub fn prudence_map_count(map: *const prudence_map) -> u64;
    pub fn prudence_map_create(name: *const c_char, attr: *const prudence_map_attr) -> *mut prudence_map;
    pub fn prudence_map_destroy(map: *mut prudence_map, dispose: Option<unsafe extern "C" fn(*mut prudence_map_node, *mut c_void)>, argument: *mut c_void) -> c_int;
    pub fn prudence_map_erase(map: *mut prudence_map, key: u64, old: *mut *mut prudence_map_node) -> c_int;
    pub fn prudence_map_erase_bytes(map: *mut prudence_map, bytes: *const c_void, length: usize, old: *mut *mut prudence_map_node) -> c_int;
    pub fn prudence_map_first(walk: *mut prudence_map_walk, map: *const prudence_map) -> *mut prudence_map_node;
    pub fn prudence_map_first_from(walk: *mut prudence_map_walk, map: *const prudence_map, key: u64) -> *mut prudence_map_node;
    pub fn prudence_map_first_from_bytes(walk: *mut prudence_map_walk, map: *const prudence_map, bytes: *const c_void, length: usize) -> *mut prudence_map_node;
    pub fn prudence_map_floor(map: *const prudence_map, key: u64) -> *mut prudence_map_node;
    pub fn prudence_map_floor_bytes(map: *const prudence_map, bytes: *const c_void, length: usize) -> *mut prudence_map_node;
    pub fn prudence_map_highest(map: *const prudence_map) -> *mut prudence_map_node;
    pub fn prudence_map_lookup(map: *const prudence_map, key: u64) -> *mut prudence_map_node;
    pub fn prudence_map_lookup_bytes(map: *const prudence_map, bytes: *const c_void, length: usize) -> *mut prudence_map_node;
    pub fn prudence_map_lowest(map: *const prudence_map) -> *mut prudence_map_node;
    pub fn prudence_map_next(walk: *mut prudence_map_walk) -> *mut prudence_map_node;
    pub fn prudence_map_next_slow(walk: *mut prudence_map_walk) -> *mut prudence_map_node;
    pub fn prudence_map_put(map: *mut prudence_map, node: *mut prudence_map_node, old: *mut *mut prudence_map_node) -> c_int;
    pub fn prudence_map_remove(map: *mut prudence_map, node: *mut prudence_map_node) -> c_int;
    pub fn prudence_map_replace(map: *mut prudence_map, old: *mut prudence_map_node, fresh: *mut prudence_map_node) -> c_int;
    pub fn prudence_map_set_bytes(node: *mut prudence_map_bytes, bytes: *const c_void, length: usize);
    pub fn prudence_map_stats_sized(map: *mut prudence_map, stats: *mut prudence_map_stats, size: usize) -> c_int;
    pub fn prudence_map_values_add(map: *mut prudence_map_values, key: u64, value: *mut c_void, there: *mut *mut c_void) -> c_int;
    pub fn prudence_map_values_add_bytes(map: *mut prudence_map_values, bytes: *const c_void, length: usize, value: *mut c_void, there: *mut *mut c_void) -> c_int;
    pub fn prudence_map_values_count(map: *const prudence_map_values) -> u64;
    pub fn prudence_map_values_create(name: *const c_char, attr: *const prudence_map_values_attr) -> *mut prudence_map_values;
    pub fn prudence_map_values_destroy(map: *mut prudence_map_values, dispose: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>, argument: *mut c_void) -> c_int;
    pub fn prudence_map_values_erase(map: *mut prudence_map_values, key: u64, old: *mut *mut c_void) -> c_int;
    pub fn prudence_map_values_erase_bytes(map: *mut prudence_map_values, bytes: *const c_void, length: usize, old: *mut *mut c_void) -> c_int;
    pub fn prudence_map_values_get(map: *const prudence_map_values, key: u64) -> *mut c_void;
    pub fn prudence_map_values_get_bytes(map: *const prudence_map_values, bytes: *const c_void, length: usize) -> *mut c_void;
    pub fn prudence_map_values_nodes(map: *const prudence_map_values) -> *const prudence_map;
    pub fn prudence_map_values_put(map: *mut prudence_map_values, key: u64, value: *mut c_void, old: *mut *mut c_void) -> c_int;
    pub fn prudence_map_values_put_bytes(map: *mut prudence_map_values, bytes: *const c_void, length: usize, value: *mut c_void, old: *mut *mut c_void) -> c_int;
    pub fn prudence_map_values_replace(map: *mut prudence_map_values, key: u64, old: *mut c_void, fresh: *mut c_void) -> c_int;
    pub fn prudence_map_values_replace_bytes(map: *mut prudence_map_values, bytes: *const c_void, length: usize, old: *mut c_void, fresh: *mut c_void) -> c_int;
    pub fn prudence_map_values_stats_sized(map: *mut prudence_map_values, stats: *mut prudence_map_stats, size: usize) -> c_int;
    pub fn prudence_map_values_value(node: *const prudence_map_node) -> *mut c_void;
    pub fn prudence_next_cache_sized(walk: *mut prudence_walk, stats: *mut prudence_cache_stats, size: usize) -> c_int;
    pub fn prudence_next_domain_sized(walk: *mut prudence_walk, stats: *mut prudence_domain_stats, size: usize) -> c_int;
    pub fn prudence_next_reader_sized(walk: *mut prudence_walk, stats: *mut prudence_reader_stats, size: usize) -> c_int;
    pub fn prudence_option_set(name: *const c_char, value: *const c_char) -> c_int;
    pub fn prudence_profile_dump(path: *const c_char) -> c_int;
    pub fn prudence_qsbr_announce(domain: *mut prudence_domain);
    pub fn prudence_qsbr_blocking_begin(domain: *mut prudence_domain) -> bool;
    pub fn prudence_qsbr_blocking_end(domain: *mut prudence_domain, was_online: bool);
    pub fn prudence_qsbr_is_online(domain: *mut prudence_domain) -> bool;
    pub fn prudence_qsbr_offline(domain: *mut prudence_domain);
    pub fn prudence_qsbr_online(domain: *mut prudence_domain);
    pub fn prudence_qsbr_quiescent(domain: *mut prudence_domain);
    pub fn prudence_read_lock();
    pub fn prudence_read_lock_first();
    pub fn prudence_read_lock_held() -> bool;
    pub fn prudence_read_lock_too_deep();
    pub fn prudence_read_unlock();
    pub fn prudence_read_unlock_unbalanced();
    pub fn prudence_reader_wake(self_: *mut prudence_reader);
    pub fn prudence_realloc(object: *mut c_void, size: usize) -> *mut c_void;
    pub fn prudence_ref_count(ref_: *const prudence_ref) -> u32;
    pub fn prudence_ref_get(ref_: *mut prudence_ref);
    pub fn prudence_ref_get_unless_zero(ref_: *mut prudence_ref) -> bool;
    pub fn prudence_ref_init(ref_: *mut prudence_ref, references: u32);
    pub fn prudence_ref_put(ref_: *mut prudence_ref) -> bool;
    pub fn prudence_ref_saturate_(ref_: *mut prudence_ref, what: *const c_char);
    pub fn prudence_routes3_create(name: *const c_char, attr: *const prudence_routes_attr) -> *mut prudence_routes;
    pub fn prudence_routes_add(table: *mut prudence_routes, prefix: *const prudence_routes_prefix, value: usize, there: *mut usize) -> c_int;
    pub fn prudence_routes_count(table: *const prudence_routes) -> u64;
    pub fn prudence_routes_destroy(table: *mut prudence_routes) -> c_int;
    pub fn prudence_routes_erase(table: *mut prudence_routes, prefix: *const prudence_routes_prefix, old: *mut usize) -> c_int;
    pub fn prudence_routes_first(walk: *mut prudence_routes_walk, table: *const prudence_routes, within: *const prudence_routes_prefix) -> usize;
    pub fn prudence_routes_get(table: *const prudence_routes, prefix: *const prudence_routes_prefix) -> usize;
    pub fn prudence_routes_lookup_ipv4(table: *const prudence_routes, address: *const c_void) -> usize;
    pub fn prudence_routes_lookup_ipv6(table: *const prudence_routes, address: *const c_void) -> usize;
    pub fn prudence_routes_lookup_many_ipv4(table: *const prudence_routes, addresses: *const c_void, count: usize, values: *mut usize);
    pub fn prudence_routes_next(walk: *mut prudence_routes_walk) -> usize;
    pub fn prudence_routes_replace(table: *mut prudence_routes, prefix: *const prudence_routes_prefix, value: usize, old: *mut usize) -> c_int;
    pub fn prudence_routes_stats_sized(table: *mut prudence_routes, stats: *mut prudence_routes_stats, size: usize) -> c_int;
    pub fn prudence_sizeof(type_: *const c_char) -> usize;
    pub fn prudence_sizes_alloc(sizes: *mut prudence_sizes, size: usize) -> *mut c_void;
    pub fn prudence_sizes_create(name: *const c_char, domain: *mut prudence_domain) -> *mut prudence_sizes;
    pub fn prudence_sizes_destroy(sizes: *mut prudence_sizes) -> c_int;
    pub fn prudence_slice_yield();
    pub fn prudence_srcu_down_read(domain: *mut prudence_domain) -> c_int;
    pub fn prudence_srcu_read_lock(domain: *mut prudence_domain) -> c_int;
    pub fn prudence_srcu_read_unlock(domain: *mut prudence_domain, index: c_int);
    pub fn prudence_srcu_up_read(domain: *mut prudence_domain, index: c_int);
    pub fn prudence_stack_below(node: *const prudence_stack_node) -> *mut prudence_stack_node;
    pub fn prudence_stack_is_empty(stack: *const prudence_stack) -> bool;
    pub fn prudence_stack_pop(stack: *mut prudence_stack) -> *mut prudence_stack_node;
    pub fn prudence_stack_push(stack: *mut prudence_stack, node: *mut prudence_stack_node) -> bool;
    pub fn prudence_stack_take_all(stack: *mut prudence_stack) -> *mut prudence_stack_node;
    pub fn prudence_stall_hook_set(hook: Option<unsafe extern "C" fn(*const prudence_stall, *mut c_void)>, argument: *mut c_void);
    pub fn prudence_stats_print(file: *mut c_void, format: c_uint) -> c_int;
    pub fn prudence_stats_sized(stats: *mut prudence_stats, size: usize) -> c_int;
    pub fn prudence_swap_exchange(handle: *mut prudence_swap, fresh: *mut c_void) -> *mut c_void;
    pub fn prudence_swap_get(handle: *const prudence_swap) -> *mut c_void;
    pub fn prudence_swap_init(handle: *mut prudence_swap, object: *mut c_void);
    pub fn prudence_swap_transfer(handle: *mut prudence_swap, fresh: *mut c_void, old: *mut *mut c_void, transfer: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void) -> c_int>, context: *mut c_void, domain: *mut prudence_domain) -> c_int;
    pub fn prudence_synchronize();
    pub fn prudence_synchronize_expedited();
    pub fn prudence_trim() -> usize;
    pub fn prudence_usable_size(object: *const c_void) -> usize;
    pub fn prudence_version() -> *const c_char;
    pub fn scm_block_thread() -> c_int;
    pub fn scm_calloc(count: usize, size: usize) -> *mut c_void;
    pub fn scm_clock_create() -> *mut scm_clock;
    pub fn scm_clock_create_realtime(period: c_uint) -> *mut scm_clock;
    pub fn scm_clock_destroy(clock: *mut scm_clock) -> c_int;
    pub fn scm_clock_refresh(clock: *mut scm_clock, object: *mut c_void, extension: c_uint) -> c_int;
    pub fn scm_clock_tick(clock: *mut scm_clock) -> c_int;
    pub fn scm_collect() -> c_int;
    pub fn scm_free(object: *mut c_void);
    pub fn scm_get_mem_info_sized(info: *mut scm_mem_info, size: usize) -> c_int;
    pub fn scm_get_region_info_sized(info: *mut scm_region_info, size: usize) -> c_int;
    pub fn scm_global_refresh(object: *mut c_void, extension: c_uint) -> c_int;
    pub fn scm_global_tick() -> c_int;
    pub fn scm_malloc(size: usize) -> *mut c_void;
    pub fn scm_realloc(object: *mut c_void, size: usize) -> *mut c_void;
    pub fn scm_refresh(object: *mut c_void, extension: c_uint) -> c_int;
    pub fn scm_region_alloc(region: *mut scm_region, size: usize) -> *mut c_void;
    pub fn scm_region_clock_refresh(clock: *mut scm_clock, region: *mut scm_region, extension: c_uint) -> c_int;
    pub fn scm_region_create() -> *mut scm_region;
    pub fn scm_region_global_refresh(region: *mut scm_region, extension: c_uint) -> c_int;
    pub fn scm_region_refresh(region: *mut scm_region, extension: c_uint) -> c_int;
    pub fn scm_region_unregister(region: *mut scm_region) -> c_int;
    pub fn scm_register_finalizer(finalizer: Option<unsafe extern "C" fn(*mut c_void) -> c_int>) -> c_int;
    pub fn scm_register_thread() -> c_int;
    pub fn scm_resume_thread() -> c_int;
    pub fn scm_set_finalizer(object: *mut c_void, number: c_int) -> c_int;
    pub fn scm_tick() -> c_int;
    pub fn scm_unregister_thread() -> c_int;
}
