/* SPDX-License-Identifier: MIT */
/*
 * Reads rules for unwinding from a module's tables. .eh_frame_hdr, which the dynamic loader finds
 * without a lock (_dl_find_object, glibc 2.35), leads by bisection to the function's description
 * (FDE), and that to the part shared with others (CIE), both in .eh_frame. FDE and CIE contain
 * programs for a table by instruction, and one row of the table is wanted. The Linux Standard Base
 * and DWARF's chapter on call frames define the format.
 *
 * Only entries that compilers and assemblers write for ordinary functions of x86-64 are understood.
 * There are no rules for signal frames, realigned stacks, places computed by expressions, or
 * pointers of other kinds; callers have another unwinder for these. Tables are trusted as that
 * unwinder trusts them.
 */
#define _GNU_SOURCE /* _dl_find_object */
#include <dlfcn.h>
#include <string.h>

#include "unwind.h"

#if UNWIND_BY_RULES

/* Weak, because the glibc at run time may be older than the one compiled for. */
extern int _dl_find_object(void *address, struct dl_find_object *found) __attribute__((weak));

enum { RBP = 6, RSP = 7, RETURN_ADDRESS = 16 }; /* register numbers */

/* Pointer encodings that are understood: four bytes, signed, relative to their own place or to
 * the header's. */
#define FROM_HERE   0x1b
#define FROM_HEADER 0x3b
#define FOUR_BYTES  0x03

/* -------------------------------------------------------------------------------------- reading */

/* `failed` is sticky: later reads return 0, and the result is no rule. */
struct reader {
    const uint8_t *next, *end;
    bool failed;
};

static uint64_t read_bytes(struct reader *from, size_t bytes)
{
    uint64_t value = 0;

    if ((size_t)(from->end - from->next) < bytes) {
        from->failed = true;
        from->next = from->end;
        return 0;
    }
    memcpy(&value, from->next, bytes);
    from->next += bytes;
    return value;
}

static uint64_t read_leb(struct reader *from, bool is_signed)
{
    uint64_t value = 0, byte;
    unsigned shift = 0;

    do {
        byte = read_bytes(from, 1);
        value |= (byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80 && shift < 63);
    if (is_signed && byte & 0x40)
        value |= UINT64_MAX << shift;
    return value;
}

static uint64_t read_number(struct reader *from)
{
    return read_leb(from, false);
}

static void skip(struct reader *from, uint64_t bytes)
{
    if ((uint64_t)(from->end - from->next) < bytes)
        from->failed = true;
    else
        from->next += bytes;
}

static int32_t signed_at(const uint8_t *place)
{
    int32_t value;

    memcpy(&value, place, sizeof value);
    return value;
}

static uint32_t unsigned_at(const uint8_t *place)
{
    return (uint32_t)signed_at(place);
}

/* Returns the body of a CIE or FDE, after the length. */
static struct reader body_at(const uint8_t *entry)
{
    uint32_t length = unsigned_at(entry);

    return (struct reader){.next = entry + 4,
                           .end = entry + 4 + (length < UINT32_MAX ? length : 0)};
}

/* ---------------------------------------------------------------------------- running a program */

struct row {
    uint64_t cfa_register, cfa_offset;
    uint64_t saved; /* rbp's place below the CFA, or 0 if still in rbp */
    bool outermost; /* the return address is undefined */
};

#define ROWS_REMEMBERED 4

struct program {
    struct row row, initial, remembered[ROWS_REMEMBERED];
    unsigned depth;
    uint64_t left; /* bytes of code between the row's place and the wanted one */
    bool reached;
    bool strange; /* saw something that no rule can express */
};

/* The register is saved at CFA + offset x -8. */
static void is_saved(struct program *program, uint64_t number, uint64_t offset)
{
    if (number == RBP)
        program->row.saved = offset * 8;
    else if (number == RSP || (number == RETURN_ADDRESS && offset != 1))
        program->strange = true;
}

static void is_restored(struct program *program, uint64_t number)
{
    if (number == RBP)
        program->row.saved = program->initial.saved;
    else if (number == RETURN_ADDRESS)
        program->row.outermost = program->initial.outermost;
}

/* The register is saved by an expression, in another register, or the like. */
static void is_elsewhere(struct program *program, uint64_t number)
{
    if (number == RBP || number == RSP || number == RETURN_ADDRESS)
        program->strange = true;
}

static void is_undefined(struct program *program, uint64_t number)
{
    if (number == RETURN_ADDRESS)
        program->row.outermost = true;
    else if (number == RSP)
        program->strange = true; /* rbp may be undefined, because nothing needs it any more */
}

static void advance(struct program *program, uint64_t bytes)
{
    program->reached = bytes > program->left;
    program->left -= program->reached ? 0 : bytes;
}

static void remember(struct program *program)
{
    if (program->depth < ROWS_REMEMBERED)
        program->remembered[program->depth++] = program->row;
    else
        program->strange = true;
}

static void recall(struct program *program)
{
    if (program->depth)
        program->row = program->remembered[--program->depth];
    else
        program->strange = true;
}

/* Executes an instruction without an operand in the lower bits; named after DW_CFA_... */
static void execute_extended(struct program *program, struct reader *from, uint64_t instruction)
{
    uint64_t number;

    switch (instruction) {
    case 0x00: /* nop */
        break;
    case 0x02: /* advance_loc1, 2, 4 */
    case 0x03:
    case 0x04:
        advance(program, read_bytes(from, (size_t)1 << (instruction - 2)));
        break;
    case 0x05: /* offset_extended */
        number = read_number(from);
        is_saved(program, number, read_number(from));
        break;
    case 0x06: /* restore_extended */
        is_restored(program, read_number(from));
        break;
    case 0x07: /* undefined */
        is_undefined(program, read_number(from));
        break;
    case 0x0a: /* remember_state */
        remember(program);
        break;
    case 0x0b: /* restore_state */
        recall(program);
        break;
    case 0x0c: /* def_cfa */
        program->row.cfa_register = read_number(from);
        program->row.cfa_offset = read_number(from);
        break;
    case 0x0d: /* def_cfa_register */
        program->row.cfa_register = read_number(from);
        break;
    case 0x0e: /* def_cfa_offset */
        program->row.cfa_offset = read_number(from);
        break;
    case 0x10: /* expression, val_expression */
    case 0x16:
        is_elsewhere(program, read_number(from));
        skip(from, read_number(from));
        break;
    case 0x2e: /* GNU_args_size */
        read_number(from);
        break;
    default: /* def_cfa_expression, same_value, register, ... */
        program->strange = true;
    }
}

static void execute(struct program *program, struct reader *from)
{
    while (from->next < from->end && !program->reached && !program->strange && !from->failed) {
        uint64_t instruction = read_bytes(from, 1), operand = instruction & 0x3f;

        switch (instruction >> 6) {
        case 0:
            execute_extended(program, from, operand);
            break;
        case 1: /* advance_loc */
            advance(program, operand);
            break;
        case 2: /* offset */
            is_saved(program, operand, read_number(from));
            break;
        default: /* restore */
            is_restored(program, operand);
        }
    }
}

/* --------------------------------------------------------------------------------- descriptions */

/* Reads a CIE up to the program. Returns false if the CIE is unusual. */
static bool open_common(const uint8_t *cie, struct reader *program)
{
    const char *augmentation;
    uint64_t version, unit, scale, returns, length;

    *program = body_at(cie);
    read_bytes(program, 4); /* 0, which marks a CIE */
    version = read_bytes(program, 1);
    augmentation = (const char *)program->next;
    while (read_bytes(program, 1))
        ;
    unit = read_number(program);
    scale = read_leb(program, true);
    returns = read_number(program); /* a byte in version 1, which reads the same below 128 */
    if (program->failed || (version != 1 && version != 3) || unit != 1 || scale != (uint64_t)-8 ||
        returns != RETURN_ADDRESS || *augmentation != 'z')
        return false;
    length = read_number(program);
    /* Each letter has its data in order: P an encoding and a pointer, R and L an encoding. R
     * describes pointers to code. */
    for (const uint8_t *data = program->next; *++augmentation; data++) {
        if (*augmentation == 'P')
            data += (*data & 0x0f) % 8 == FOUR_BYTES ? 4 : 8;
        else if (*augmentation == 'R' ? *data != FROM_HERE : *augmentation != 'L')
            return false;
    }
    skip(program, length);
    return !program->failed;
}

static uint64_t rule_of(const struct row *row)
{
    bool from_rbp = row->cfa_register == RBP;

    if (row->outermost)
        return RULE_OUTERMOST;
    if ((!from_rbp && row->cfa_register != RSP) || row->cfa_offset % 8 || row->cfa_offset < 8 ||
        row->cfa_offset >= 8 << 16 || row->saved >= 8 << 8)
        return 0;
    return row->cfa_offset / 8 << 10 | row->saved / 8 << 2 | (from_rbp ? RULE_FROM_RBP : 0);
}

static uint64_t rule_by(const uint8_t *fde, uintptr_t pc)
{
    struct reader common, own = body_at(fde);
    struct program program = {.left = 0};
    const uint8_t *place = own.next, *begin = place + 4 + signed_at(place + 4);
    size_t inside = pc - (uintptr_t)begin;

    if (inside >= unsigned_at(place + 8) || !open_common(place - unsigned_at(place), &common))
        return 0;
    execute(&program, &common);
    program.initial = program.row;
    program.left = inside;
    skip(&own, 12);
    skip(&own, read_number(&own));
    execute(&program, &own);
    return common.failed || own.failed || program.strange ? 0 : rule_of(&program.row);
}

/* Finds the last entry of the header's table at or below `pc`. An entry is two offsets: the
 * function's and the FDE's. */
static const uint8_t *description_of(const uint8_t *header, uintptr_t pc)
{
    const uint8_t *table = header + 12;
    int64_t wanted = (int64_t)(pc - (uintptr_t)header);
    size_t low = 0, high = unsigned_at(header + 8);

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (signed_at(table + 8 * middle) <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? header + signed_at(table + 8 * (low - 1) + 4) : NULL;
}

uint64_t unwind_rule_at(uintptr_t pc)
{
    const uint8_t expected[] = {1, FROM_HERE, FOUR_BYTES, FROM_HEADER};
    struct dl_find_object module;
    const uint8_t *header, *fde;

    if (!_dl_find_object ||
        _dl_find_object((void *)pc, &module)) /* NOLINT(performance-no-int-to-ptr) */
        return 0;
    header = module.dlfo_eh_frame;
    if (!header || memcmp(header, expected, sizeof expected) != 0)
        return 0;
    fde = description_of(header, pc);
    return fde ? rule_by(fde, pc) : 0;
}

#endif /* UNWIND_BY_RULES */
