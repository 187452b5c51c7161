/* Values in the pages of Parquet files, as Arrow lays them out; `library.py` says how it is called.
 *
 * Pages come unpacked, and everything in them may be wrong: no byte is looked at before it is known
 * to be there, and what does not fit gives -1, whereupon pyarrow reads the column and says what is
 * wrong with it. Nothing is kept from one call to the next, and nothing is allocated.
 */

#include <stdint.h>
#include <string.h>

#define DAMAGED (-1)
#define EXPORTED __attribute__((visibility("default")))

/* ---- Headers of pages: Thrift's compact protocol ---- */

enum { TRUE = 1, FALSE = 2, BYTE = 3, I16 = 4, I32 = 5, I64 = 6, DOUBLE = 7, BINARY = 8, STRUCT = 12 };
enum { DATA_PAGE = 0, DICTIONARY_PAGE = 2, DATA_PAGE_V2 = 3 };
enum { NO_FIELD = 16, DEEPEST = 8 };

typedef struct {
    const uint8_t *at, *end;
} cursor;

static int read_varint(cursor *from, uint64_t *found) {
    *found = 0;
    for (int shift = 0; shift < 64 && from->at < from->end; shift += 7) {
        uint8_t byte = *from->at++;
        *found |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return 0;
    }
    return DAMAGED;
}

static int read_signed(cursor *from, int64_t *found) {
    uint64_t raw;
    if (read_varint(from, &raw)) return DAMAGED;
    *found = (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
    return 0;
}

static int skip(cursor *from, uint64_t bytes) {
    if (bytes > (uint64_t)(from->end - from->at)) return DAMAGED;
    from->at += bytes;
    return 0;
}

/* The numbers among the fields of a struct and of the structs in it: found[parent][field], where the
 * parent of the outermost fields is 0. Others are passed over, and so is what lies deeper. */
static int read_struct(cursor *from, int64_t found[NO_FIELD][NO_FIELD]) {
    int64_t outer[DEEPEST], field = 0;
    int depth = 0;
    for (;;) {
        if (from->at == from->end) return DAMAGED;
        uint8_t head = *from->at++;
        if (!head) {
            if (!depth) return 0;
            field = outer[--depth];
            continue;
        }
        if (head >> 4) field += head >> 4;
        else if (read_signed(from, &field)) return DAMAGED;
        int64_t value = 0;
        uint64_t length;
        switch (head & 15) {
        case TRUE: case FALSE:
            value = (head & 15) == TRUE;
            break;
        case I16: case I32: case I64:
            if (read_signed(from, &value)) return DAMAGED;
            break;
        case BYTE:
            if (skip(from, 1)) return DAMAGED;
            continue;
        case DOUBLE:
            if (skip(from, 8)) return DAMAGED;
            continue;
        case BINARY:
            if (read_varint(from, &length) || skip(from, length)) return DAMAGED;
            continue;
        case STRUCT:
            if (depth == DEEPEST) return DAMAGED;
            outer[depth++] = field;
            field = 0;
            continue;
        default:
            return DAMAGED;
        }
        int64_t parent = depth ? outer[0] : 0;
        if (depth < 2 && field > 0 && field < NO_FIELD && parent >= 0 && parent < NO_FIELD)
            found[parent][field] = value;
    }
}

/* What is said of each page of a column chunk: its kind, how many values it has, how they and their
 * levels are encoded, how long the levels of a page of the second version are (-1: they say it
 * themselves), whether it is packed, its size when unpacked, where its bytes begin and where they
 * end, and their CRC-32 (-1: none). Gives the number of pages, of which at most `room` are described. */
enum { PAGE_FACTS = 10 };

EXPORTED
int64_t millpond_headers(const uint8_t *chunk, int64_t size, int64_t (*pages)[PAGE_FACTS], int64_t room) {
    cursor from = {chunk, chunk + size};
    int64_t count = 0;
    for (; from.at < from.end; count++) {
        int64_t found[NO_FIELD][NO_FIELD];
        memset(found, -1, sizeof found);
        found[0][4] = INT64_MIN; /* a CRC is any number of 32 bits, -1 among them */
        if (read_struct(&from, found)) return DAMAGED;
        int64_t crc = found[0][4] == INT64_MIN ? -1 : (int64_t)(uint32_t)found[0][4];
        int64_t kind = found[0][1], unpacked = found[0][2], stored = found[0][3];
        int64_t values, encoding, level_encoding = 3, levels = -1, is_packed = 1;
        switch (kind) {
        case DATA_PAGE:
            values = found[5][1], encoding = found[5][2], level_encoding = found[5][3];
            break;
        case DICTIONARY_PAGE:
            values = found[7][1], encoding = found[7][2];
            break;
        case DATA_PAGE_V2:
            values = found[8][1], encoding = found[8][4], levels = found[8][5];
            if (found[8][6] || levels < 0 || levels > stored || levels > unpacked) return DAMAGED;
            is_packed = found[8][7] != 0;
            break;
        default:
            return DAMAGED;
        }
        if (values < 0 || encoding < 0 || unpacked < 0 || unpacked > INT32_MAX) return DAMAGED;
        if (stored < 0 || stored > from.end - from.at) return DAMAGED;
        int64_t start = from.at - chunk;
        from.at += stored;
        if (count < room) {
            int64_t facts[PAGE_FACTS] = {kind, values, encoding, level_encoding, levels,
                                         is_packed, unpacked, start, start + stored, crc};
            memcpy(pages[count], facts, sizeof facts);
        }
    }
    return count;
}

/* ---- Footers: Thrift's compact protocol, too ---- */

enum { LIST = 9, SET = 10, MAP = 11, MOST_NESTED = 16 };
enum { SCHEMA = 2, ROW_GROUPS = 4, COLUMNS = 1, META_DATA = 3, CRYPTO = 8, SIZES = 16 };
enum { UNENCODED = 1, REPETITIONS = 2, DEFINITIONS = 3, TYPE = 1, REPETITION = 3, CHILDREN = 5 };
enum { OPTIONAL = 1, REPEATED = 2, BYTE_ARRAY = 6 };

typedef struct {
    int64_t repetitions, definitions, is_bytes;
} leaf;

/* The type of the next field, 0 at the end of a struct. */
static int next_field(cursor *from, int64_t *field) {
    if (from->at == from->end) return DAMAGED;
    uint8_t head = *from->at++;
    if (!head) return 0;
    if (head >> 4) *field += head >> 4;
    else if (read_signed(from, field)) return DAMAGED;
    return head & 15;
}

static int read_size(cursor *from, uint64_t *size, int *type) {
    if (from->at == from->end) return DAMAGED;
    uint8_t head = *from->at++;
    *type = head & 15;
    *size = head >> 4;
    return *size == 15 ? read_varint(from, size) : 0;
}

static int skip_value(cursor *from, int type, int depth) {
    uint64_t size;
    int64_t field = 0;
    int inner;
    switch (type) {
    case TRUE: case FALSE: return 0;
    case BYTE: return skip(from, 1);
    case I16: case I32: case I64: return read_varint(from, &size);
    case DOUBLE: return skip(from, 8);
    case BINARY: return read_varint(from, &size) ? DAMAGED : skip(from, size);
    case LIST: case SET:
        if (depth == MOST_NESTED || read_size(from, &size, &inner)) return DAMAGED;
        for (; size; size--)
            if (inner == TRUE || inner == FALSE ? skip(from, 1) : skip_value(from, inner, depth + 1)) return DAMAGED;
        return 0;
    case STRUCT:
        if (depth == MOST_NESTED) return DAMAGED;
        while ((inner = next_field(from, &field)) > 0)
            if (skip_value(from, inner, depth + 1)) return DAMAGED;
        return inner;
    default: return DAMAGED;
    }
}

/* The leaves among the elements of a schema that follow: those of one parent, whose levels are known. */
static int read_leaves(cursor *from, uint64_t *left, leaf above, int64_t children, int is_root, leaf *leaves,
                       int64_t room, int64_t *count, int depth) {
    for (; children > 0 && *left; children--) {
        leaf mine = above;
        int64_t field = 0, repetition = 0, below = 0, kind = -1;
        int type;
        --*left;
        while ((type = next_field(from, &field)) > 0) {
            int64_t *known = field == REPETITION ? &repetition : field == CHILDREN ? &below : field == TYPE ? &kind : 0;
            if (known ? read_signed(from, known) : skip_value(from, type, 0)) return DAMAGED;
        }
        if (type) return DAMAGED;
        if (!is_root) {
            mine.repetitions += repetition == REPEATED;
            mine.definitions += repetition == OPTIONAL || repetition == REPEATED;
        }
        mine.is_bytes = kind == BYTE_ARRAY;
        if (below > 0) {
            if (depth == 1 << 10) return DAMAGED;
            if (read_leaves(from, left, mine, below, 0, leaves, room, count, depth + 1)) return DAMAGED;
        } else if (!is_root) {
            if (*count == room) return DAMAGED;
            leaves[(*count)++] = mine;
        }
    }
    return 0;
}

static int check_sizes(cursor *from, const leaf *known) {
    int64_t field = 0, number;
    uint64_t size;
    int type, inner;
    while ((type = next_field(from, &field)) > 0) {
        if (field == UNENCODED && !known->is_bytes) return DAMAGED;
        if (field != REPETITIONS && field != DEFINITIONS) {
            if (skip_value(from, type, 0)) return DAMAGED;
            continue;
        }
        int64_t most = field == REPETITIONS ? known->repetitions : known->definitions;
        if (read_size(from, &size, &inner) || (size && size != (uint64_t)most + 1)) return DAMAGED;
        for (; size; size--)
            if (read_signed(from, &number)) return DAMAGED;
    }
    return type;
}

static int check_column(cursor *from, const leaf *known) {
    int64_t field = 0, inner;
    int type, within, is_described = 0;
    while ((type = next_field(from, &field)) > 0) {
        if (field == CRYPTO) return DAMAGED;
        if (field != META_DATA) {
            if (skip_value(from, type, 0)) return DAMAGED;
            continue;
        }
        is_described = 1;
        inner = 0;
        while ((within = next_field(from, &inner)) > 0)
            if (inner == SIZES ? check_sizes(from, known) : skip_value(from, within, 0)) return DAMAGED;
        if (within) return DAMAGED;
    }
    return type || !is_described ? DAMAGED : 0;
}

/* Whether pyarrow can be asked for the columns of a footer, which has room for so many leaves. */
EXPORTED
int64_t millpond_footer(const uint8_t *footer, int64_t size, leaf *leaves, int64_t room) {
    cursor from = {footer, footer + size};
    const leaf none = {0, 0, 0};
    int64_t field = 0, count = 0, within;
    uint64_t items;
    int type, inner;
    while ((type = next_field(&from, &field)) > 0) {
        if (field == SCHEMA) {
            if (read_size(&from, &items, &inner)) return DAMAGED;
            if (read_leaves(&from, &items, none, 1, 1, leaves, room, &count, 0) || items) return DAMAGED;
        } else if (field == ROW_GROUPS) {
            if (read_size(&from, &items, &inner)) return DAMAGED;
            for (; items; items--) {
                within = 0;
                while ((type = next_field(&from, &within)) > 0) {
                    uint64_t columns;
                    if (within != COLUMNS) {
                        if (skip_value(&from, type, 0)) return DAMAGED;
                        continue;
                    }
                    if (read_size(&from, &columns, &inner) || columns > (uint64_t)count) return DAMAGED;
                    for (uint64_t number = 0; number < columns; number++)
                        if (check_column(&from, &leaves[number])) return DAMAGED;
                }
                if (type) return DAMAGED;
            }
        } else if (skip_value(&from, type, 0)) return DAMAGED;
    }
    return type;
}

/* ---- Small numbers: runs of one number, and runs of numbers packed by bits ---- */

typedef struct {
    int64_t length;
    const uint8_t *packed; /* NULL: `value`, so many times */
    uint32_t value;
} run;

static int read_run(cursor *from, int64_t bits, int64_t most, run *found) {
    uint64_t header;
    if (read_varint(from, &header) || header >> 1 == 0) return DAMAGED;
    uint64_t length = header >> 1, left = (uint64_t)(from->end - from->at);
    *found = (run){0, NULL, 0};
    if (header & 1) {
        found->packed = from->at;
        if (bits && length > left / (uint64_t)bits) { /* some writers cut the last one short */
            from->at = from->end;
            length = 8 * left / (uint64_t)bits;
            if (!length) return DAMAGED;
        } else {
            from->at += length * (uint64_t)bits;
            length = length > (uint64_t)most / 8 ? (uint64_t)most : 8 * length;
        }
    } else {
        uint64_t bytes = (uint64_t)(bits + 7) / 8;
        if (bytes > left) return DAMAGED;
        for (uint64_t i = 0; i < bytes; i++) found->value |= (uint32_t)from->at[i] << 8 * i;
        if (bits < 32 && found->value >> bits) return DAMAGED;
        from->at += bytes;
    }
    found->length = length > (uint64_t)most ? most : (int64_t)length;
    return 0;
}

/* How many numbers of a packed run can be read eight bytes at a time; `end` is where the page ends. */
static int64_t with_room(const run *packed, int64_t bits, const uint8_t *end) {
    int64_t spare = 8 * (end - packed->packed - 8);
    int64_t found = spare < 0 ? 0 : bits ? spare / bits + 1 : packed->length;
    return found < packed->length ? found : packed->length;
}

static inline uint32_t number_at(const uint8_t *packed, int64_t bit, int64_t bytes) {
    uint64_t word = 0;
    memcpy(&word, packed + (bit >> 3), (size_t)bytes);
    return (uint32_t)(word >> (bit & 7));
}

/* Numbers of a packed run near the end of the page. */
static uint32_t last_number(const run *packed, int64_t bit, const uint8_t *end) {
    int64_t left = end - (packed->packed + (bit >> 3));
    return number_at(packed->packed, bit, left < 8 ? left : 8);
}

static uint32_t mask_of(int64_t bits) { return bits < 32 ? ((uint32_t)1 << bits) - 1 : UINT32_MAX; }

/* So many numbers of so many bits. */
static int read_numbers(const uint8_t *data, int64_t size, int64_t bits, int64_t count, uint32_t *out) {
    if (bits < 0 || bits > 32) return DAMAGED;
    cursor from = {data, data + size};
    uint32_t mask = mask_of(bits);
    run next;
    for (int64_t done = 0; done < count; done += next.length, out += next.length) {
        if (read_run(&from, bits, count - done, &next)) return DAMAGED;
        if (!next.packed) {
            for (int64_t i = 0; i < next.length; i++) out[i] = next.value;
            continue;
        }
        int64_t i = 0, safe = with_room(&next, bits, from.end);
        for (; i < safe; i++) out[i] = number_at(next.packed, i * bits, 8) & mask;
        for (; i < next.length; i++) out[i] = last_number(&next, i * bits, from.end) & mask;
    }
    return 0;
}

/* The numbers at some places among so many, in rising order; they take the place of those. */
static int pick_numbers(const uint8_t *data, int64_t size, int64_t bits, int64_t count, uint32_t *places,
                        int64_t wanted) {
    if (bits < 0 || bits > 32) return DAMAGED;
    cursor from = {data, data + size};
    uint32_t mask = mask_of(bits);
    run next;
    for (int64_t i = 0, done = 0; i < wanted; done += next.length) {
        if (done >= count || read_run(&from, bits, count - done, &next)) return DAMAGED;
        for (; i < wanted && places[i] < done + next.length; i++)
            places[i] = next.packed ? last_number(&next, (places[i] - done) * bits, from.end) & mask : next.value;
    }
    return 0;
}

/* A level for each of so many rows, none above `top`; gives how many are `top`. */
static int64_t read_levels(const uint8_t *data, int64_t size, int64_t top, int64_t rows, uint8_t *out) {
    if (top < 1 || top > 255) return DAMAGED;
    int64_t bits = 1, there = 0;
    while (top >> bits) bits++;
    cursor from = {data, data + size};
    uint32_t mask = mask_of(bits);
    run next;
    for (int64_t done = 0; done < rows; done += next.length, out += next.length) {
        if (read_run(&from, bits, rows - done, &next)) return DAMAGED;
        if (!next.packed) {
            if (next.value > (uint32_t)top) return DAMAGED;
            memset(out, (int)next.value, (size_t)next.length);
            there += next.value == (uint32_t)top ? next.length : 0;
            continue;
        }
        int64_t safe = with_room(&next, bits, from.end);
        for (int64_t i = 0; i < next.length; i++) {
            uint32_t level = i < safe ? number_at(next.packed, i * bits, 8)
                                      : last_number(&next, i * bits, from.end);
            level &= mask;
            if (level > (uint32_t)top) return DAMAGED;
            out[i] = (uint8_t)level;
            there += level == (uint32_t)top;
        }
    }
    return there;
}

/* ---- Pages ---- */

/* A page as it is told of: how many rows it has, where its levels are and how many bytes they take
 * (nowhere: its body begins with that number, in four bytes, and with them), and where its body is. */
typedef struct {
    int64_t rows;
    const uint8_t *levels;
    int64_t level_bytes;
    const uint8_t *body;
    int64_t size;
} page;

/* Reads a page's levels; gives how many rows have a value, and in `at` where the values begin. */
static int64_t open_page(const page *next, int64_t top, uint8_t *levels, int64_t *at) {
    const uint8_t *packed = next->levels;
    int64_t bytes = next->level_bytes;
    *at = 0;
    if (!top) return next->rows;
    if (!packed) {
        uint32_t length;
        if (next->size < 4) return DAMAGED;
        memcpy(&length, next->body, 4);
        if (length > next->size - 4) return DAMAGED;
        packed = next->body + 4, bytes = length, *at = 4 + bytes;
    }
    return read_levels(packed, bytes, top, next->rows, levels);
}

/* The levels of all rows of some pages, and the numbers of all values, unless those are in the pages
 * themselves (NULL). Gives how many values there are, and in `at` where they begin in the last page. */
EXPORTED
int64_t millpond_open(const page *pages, int64_t count, int64_t top, uint8_t *levels, uint32_t *numbers,
                      int64_t *at) {
    int64_t there = 0;
    for (const page *next = pages; next < pages + count; levels += next->rows, next++) {
        int64_t some = open_page(next, top, levels, at);
        if (some < 0) return DAMAGED;
        if (numbers && some) {
            const uint8_t *from = next->body + *at;
            int64_t size = next->size - *at - 1;
            if (size < 0 || read_numbers(from + 1, size, from[0], some, numbers + there)) return DAMAGED;
        }
        there += some;
    }
    return there;
}

/* The same of some rows alone, whose places stand in order, and the numbers of those of them that have a
 * value: in the dictionary, or among the values of the page. All levels of a page go to `every` first. */
EXPORTED
int64_t millpond_pick(const page *pages, int64_t count, int64_t top, int64_t is_by_number,
                      const int64_t *places, int64_t wanted, uint8_t *every, uint8_t *levels,
                      uint32_t *numbers, int64_t *at) {
    int64_t start = 0, there = 0, i = 0;
    for (const page *next = pages; next < pages + count; start += next->rows, next++) {
        int64_t some = open_page(next, top, every, at), first = there, row = 0, value = 0;
        if (some < 0) return DAMAGED;
        for (; i < wanted && places[i] < start + next->rows; i++) {
            int64_t place = places[i] - start;
            if (place < row) return DAMAGED;
            if (some == next->rows) value = place;
            else
                for (; row < place; row++) value += every[row] == top;
            levels[i] = (uint8_t)(some == next->rows ? top : every[place]);
            if (levels[i] == top) numbers[there++] = (uint32_t)value;
        }
        if (is_by_number && there > first) {
            const uint8_t *from = next->body + *at;
            int64_t size = next->size - *at - 1;
            if (size < 0 || pick_numbers(from + 1, size, from[0], some, numbers + first, there - first))
                return DAMAGED;
        }
    }
    return i == wanted ? there : DAMAGED;
}

/* ---- Texts: offsets and bytes ----
 *
 * `offsets[0]` says where in `out` the first text goes; offsets[1], offsets[2], … are filled in. `out`
 * has room for so many bytes. A row whose level is not `top` has no text; without levels (NULL) all
 * have one.
 */

enum { SHORT = 16 };

/* Short texts are copied by a fixed number of bytes, which takes a quarter of the time. */
static inline void copy(uint8_t *to, int64_t room, const uint8_t *from, int64_t there, int64_t length) {
    if (length <= SHORT && there >= SHORT && room >= SHORT) memcpy(to, from, SHORT);
    else if (length <= 3 * SHORT && there >= 3 * SHORT && room >= 3 * SHORT) memcpy(to, from, 3 * SHORT);
    else memcpy(to, from, (size_t)length);
}

static inline int64_t length_at(const uint8_t *data, int64_t size, int64_t at) {
    uint32_t length;
    if (size - at < 4) return DAMAGED;
    memcpy(&length, data + at, 4);
    return length > size - at - 4 ? DAMAGED : (int64_t)length;
}

/* The texts of so many rows, each behind its length in four bytes, from the byte `*at` on, which then
 * stands behind them; `there` is how many are left. Only some of them, if there are numbers, which tell
 * their places in rising order. Gives how many rows have a text. */
EXPORTED
int64_t millpond_plain(const uint8_t *data, int64_t size, int64_t *at, const uint32_t *numbers, int64_t there,
                       const uint8_t *levels, int64_t top, int64_t rows, int32_t *offsets, uint8_t *out,
                       int64_t room) {
    int64_t from = *at, to = offsets[0], value = 0, used = 0, length;
    if (from < 0 || from > size || to < 0) return DAMAGED;
    for (int64_t i = 0; i < rows; i++) {
        if (!levels || levels[i] == top) {
            if (used == there) return DAMAGED;
            if (numbers)
                for (; value < numbers[used]; value++) {
                    if ((length = length_at(data, size, from)) < 0) return DAMAGED;
                    from += 4 + length;
                }
            length = length_at(data, size, from);
            if (length < 0 || length > room - to) return DAMAGED;
            copy(out + to, room - to, data + from + 4, size - from - 4, length);
            from += 4 + length;
            to += length;
            value++;
            used++;
        }
        offsets[i + 1] = (int32_t)to;
    }
    *at = from;
    return used;
}

/* Where the texts of a dictionary page begin, each behind its length, and where the last one ends. Gives
 * the length of the longest. */
EXPORTED
int64_t millpond_entries(const uint8_t *data, int64_t size, int64_t count, int32_t *starts) {
    int64_t at = 0, longest = 0;
    if (size > INT32_MAX) return DAMAGED;
    for (int64_t i = 0; i < count; i++) {
        int64_t length = length_at(data, size, at);
        if (length < 0) return DAMAGED;
        starts[i] = (int32_t)at;
        longest = length > longest ? length : longest;
        at += 4 + length;
    }
    starts[count] = (int32_t)at;
    return longest;
}

/* How many bytes the texts with these numbers take; every number has to be one of a text. */
EXPORTED
int64_t millpond_length(const uint8_t *words, const int32_t *starts, int64_t count, const uint32_t *numbers,
                        int64_t rows) {
    int64_t total = 0;
    (void)words;
    for (int64_t i = 0; i < rows; i++) {
        if (numbers[i] >= count) return DAMAGED;
        total += starts[numbers[i] + 1] - starts[numbers[i]] - 4;
    }
    return total;
}

/* The texts with these numbers in a dictionary page, a number for each row that has a text; gives how
 * many those are. */
EXPORTED
int64_t millpond_words(const uint8_t *words, const int32_t *starts, int64_t count, const uint32_t *numbers,
                       int64_t there, const uint8_t *levels, int64_t top, int64_t rows, int32_t *offsets,
                       uint8_t *out, int64_t room) {
    int64_t used = 0, to = offsets[0], size = starts[count];
    if (to < 0) return DAMAGED;
    for (int64_t i = 0; i < rows; i++) {
        if (!levels || levels[i] == top) {
            if (used == there || numbers[used] >= count) return DAMAGED;
            int64_t start = starts[numbers[used]] + 4, length = starts[numbers[used] + 1] - start;
            if (length > room - to) return DAMAGED;
            copy(out + to, room - to, words + start, size - start, length);
            used++;
            to += length;
        }
        offsets[i + 1] = (int32_t)to;
    }
    return used;
}

/* A number for each row, 0 where there is no text; gives how many have one. */
EXPORTED
int64_t millpond_spread(const uint32_t *numbers, int64_t there, const uint8_t *levels, int64_t top, int64_t rows,
                        uint32_t *out) {
    int64_t used = 0;
    if (!levels) {
        if (rows > there) return DAMAGED;
        memcpy(out, numbers, 4 * (size_t)rows);
        return rows;
    }
    for (int64_t i = 0; i < rows; i++) {
        int is_there = levels[i] == top;
        if (is_there && used == there) return DAMAGED;
        out[i] = is_there ? numbers[used] : 0;
        used += is_there;
    }
    return used;
}

/* ---- Values of one width ---- */

/* The values with these numbers among `count` of them, for each row that has one, and zeros for the
 * others; gives how many have one. Without numbers (NULL) it is one value after the other. */
#define FIXED(name, value)                                                                              \
    static int64_t name(const uint8_t *words, int64_t count, const uint32_t *numbers, int64_t there,    \
                        const uint8_t *levels, int64_t top, int64_t rows, value *out) {                 \
        int64_t used = 0;                                                                               \
        for (int64_t i = 0; i < rows; i++) {                                                            \
            if (levels && levels[i] != top) {                                                           \
                out[i] = 0;                                                                             \
                continue;                                                                               \
            }                                                                                           \
            int64_t number = numbers && used < there ? numbers[used] : used;                            \
            if (used == there || number >= count) return DAMAGED;                                       \
            memcpy(out + i, words + number * (int64_t)sizeof(value), sizeof(value));                    \
            used++;                                                                                     \
        }                                                                                               \
        return used;                                                                                    \
    }

FIXED(four_bytes, uint32_t)
FIXED(eight_bytes, uint64_t)

EXPORTED
int64_t millpond_fixed(const uint8_t *words, int64_t count, int64_t width, const uint32_t *numbers,
                       int64_t there, const uint8_t *levels, int64_t top, int64_t rows, void *out) {
    if (width == 4) return four_bytes(words, count, numbers, there, levels, top, rows, out);
    if (width == 8) return eight_bytes(words, count, numbers, there, levels, top, rows, out);
    return DAMAGED;
}
