/* SPDX-License-Identifier: MIT */
/*
 * Numbers and names on command lines, and the messages that refuse bad ones.
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arguments.h"

/* ----------------------------------------------------------------------------------- one number */

TEST(numbers_have_suffixes_and_powers)
{
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {{"0", 0},
                {"007", 7},
                {"512", 512},
                {"4k", 4096},
                {"3M", 3 << 20},
                {"2G", UINT64_C(2) << 30},
                {"2^0", 1},
                {"2^63", UINT64_C(1) << 63},
                {"18446744073709551615", UINT64_MAX}};

    for (unsigned i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t value = 1234;

        assert_true(number_parse(good[i].text, 0, UINT64_MAX, &value));
        assert_true(value == good[i].value);
    }
}

TEST(what_is_no_number_is_refused)
{
    static const char *const bad[] = {"",     " 1",   "-1",   "+1",          "x",
                                      "1x",   "1KB",  "1.5",  "0x10",        "18446744073709551616",
                                      "2^64", "2^-1", "2^^1", "3^2",         "2^",
                                      "K",    "1 ",   "1,2",  "17179869184G"};
    uint64_t value;

    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(number_parse(bad[i], 0, UINT64_MAX, &value));
    assert_false(number_parse("4", 5, 6, &value));
    assert_true(number_parse("5", 5, 6, &value) && number_parse("6", 5, 6, &value));
    assert_false(number_parse("7", 5, 6, &value));
}

/* ----------------------------------------------------------------------------------- with argp */

static const char *colour_name(unsigned colour)
{
    static const char *const names[] = {"red", "green", "blue", NULL};

    return names[colour];
}

struct request {
    uint64_t count;
    double share;
    unsigned colour;
    struct numbers sizes, colours;
};

enum { KEY_COLOURS = 300 };

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct request *request = state->input;

    switch (key) {
    case 'n':
    case ARGP_KEY_ARG:
        request->count = argument_number(state, key, text, 1, 2000);
        break;
    case 'x':
        request->share = argument_real(state, key, text, 10);
        break;
    case 'c':
        request->colour = argument_name(state, key, text, colour_name);
        break;
    case 's':
        request->sizes = argument_numbers(state, key, text, 16, 4096);
        break;
    case KEY_COLOURS:
        request->colours = argument_names(state, key, text, colour_name);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "A heading", 0},
    {"count", 'n', "N", 0, NULL, 0},
    {"share", 'x', "X", 0, NULL, 0},
    {"colour", 'c', "NAME", 0, NULL, 0},
    {"size", 's', "BYTES,...", 0, NULL, 0},
    {"colours", KEY_COLOURS, "NAME,...", 0, NULL, 0},
    {0},
};

static const struct argp argp = {.options = options, .parser = parse};

static struct request parse_one(const char *argument)
{
    char *line[] = {strdup("program"), strdup(argument), NULL};
    struct request request = {.count = 0};

    argp_parse(&argp, 2, line, 0, NULL, &request);
    free(line[0]);
    free(line[1]);
    return request;
}

/* Checks that the argument ends the program with that message. */
static void refused(const char *argument, const char *message)
{
    char said[1024];
    int ends[2], status;
    ssize_t length;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        parse_one(argument);
        _exit(0);
    }
    close(ends[1]);
    length = read(ends[0], said, sizeof said - 1);
    said[length > 0 ? length : 0] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 64);
    if (!strstr(said, message))
        fail_msg("'%s' says: %s", argument, said);
}

TEST(options_take_what_is_wanted)
{
    struct request request;

    assert_int_equal(parse_one("--count=2^4").count, 16);
    assert_int_equal(parse_one("17").count, 17);
    assert_true(parse_one("-x0.5").share > 0.49);
    assert_int_equal(parse_one("--colour=blue").colour, 2);
    request = parse_one("--size=16,1k,64");
    assert_int_equal(request.sizes.count, 3);
    assert_int_equal(request.sizes.value[1], 1024);
    request = parse_one("--colours=blue,red");
    assert_int_equal(request.colours.count, 2);
    assert_int_equal(request.colours.value[0], 2);
    assert_int_equal(request.colours.value[1], 0);
}

TEST(a_refusal_names_the_option_and_the_text)
{
    char many[3 * NUMBERS + 16] = "--size=";

    refused("--count=0", "program: --count: '0' is not a number from 1 to 2000");
    refused("-nx", "--count: 'x' is not a number from 1 to 2000");
    refused("3K", "program: '3K' is not a number from 1 to 2000");
    refused("--share=0", "--share: '0' is not a number above 0, up to 10");
    refused("--share=11", "--share: '11' is not a number above 0, up to 10");
    refused("--share=nan", "--share: 'nan' is not a number above 0, up to 10");
    refused("--share=1s", "--share: '1s' is not a number above 0, up to 10");
    refused("--colour=pink", "--colour: 'pink' is not red, green or blue");
    refused("--size=16,x", "--size: '16,x' is not a list of numbers from 16 to 4096");
    refused("--size=16,", "--size: '16,' is not a list of numbers from 16 to 4096");
    refused("--colours=red,,blue", "--colours: '' is not red, green or blue");
    for (unsigned i = 0; i <= NUMBERS; i++)
        strcat(many, i ? ",16" : "16");
    refused(many, "is not a list of numbers from 16 to 4096");
}

SUITE()
