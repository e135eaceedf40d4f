/* schemas.c - what bodies look like, for the OpenAPI document. The job that one submits is made from its
 * key table (openapi.c). Answers may gain fields: none of these schemas forbids more. */
#include "api/openapi.h"

#include <stddef.h>

#define S(text) "{\"type\":\"string\",\"description\":\"" text "\"}"
#define N(text) "{\"type\":\"integer\",\"description\":\"" text "\"}"
#define B(text) "{\"type\":\"boolean\",\"description\":\"" text "\"}"
#define TIME(text) "{\"type\":\"string\",\"format\":\"date-time\",\"description\":\"" text "\"}"
#define CURSOR                                                                                     \
    "{\"type\":[\"string\",\"null\"],\"description\":\"of the next page; null: the last\"}"
#define LIST_OF(name) "{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/" name "\"}}"
#define NULLABLE(text) "{\"type\":[\"string\",\"null\"],\"description\":\"" text "\"}"
#define REF(name) "{\"$ref\":\"#/components/schemas/" name "\"}"
#define OBJECT(fields) "{\"type\":\"object\",\"properties\":{" fields "}}"
#define NEEDING(required, fields)                                                                  \
    "{\"type\":\"object\",\"required\":[" required "],\"properties\":{" fields "}}"

/* One field in a line; the formatter would make stairs of it. */
/* clang-format off */
const struct schema_row schema_table[] = {
    {"Problem", "{\"type\":\"object\",\"description\":\"RFC 9457\","
        "\"required\":[\"type\",\"title\",\"status\"],\"properties\":{"
        "\"type\":" S("urn:tieline:problem:NAME") ","
        "\"title\":" S("what kind of problem") ","
        "\"status\":" N("the HTTP status") ","
        "\"detail\":" S("what is wrong") ","
        "\"expected\":" S("what was expected, or what to do") ","
        "\"pointer\":" S("JSON pointer of what is wrong") ","
        "\"line\":" N("of what is wrong, from 1") ","
        "\"column\":" N("of what is wrong, from 1") ","
        "\"file\":" S("that holds it") ","
        "\"retry\":" B("another try can help") "}}"},
    {"Attempt", NEEDING("\"number\",\"state\",\"place\"",
        "\"number\":" N("from 1") ","
        "\"state\":" S("state of the attempt") ","
        "\"place\":" S("where") ","
        "\"native_id\":" S("the member's own name for it") ","
        "\"burst\":" S("that opened its tier") ","
        "\"outcome\":" S("how it ended") ","
        "\"exit_code\":" N("of the program") ","
        "\"signal\":" N("that ended the program") ","
        "\"reason\":" S("in words") ","
        "\"placed\":" TIME("decided") ","
        "\"accepted\":" TIME("the member has it") ","
        "\"started\":" TIME("it runs") ","
        "\"ended\":" TIME("it ended") ","
        "\"unknown_since\":" TIME("its member does not say what became of it") ","
        "\"rent_expected\":" S("money, of rented places only") ","
        "\"booked\":" S("money that its budget holds back for it") ","
        "\"settled\":" S("money that it cost so far"))},
    {"Job", NEEDING("\"id\",\"name\",\"state\",\"class\",\"owner\",\"attempt\",\"final\",\"attempts\"",
        "\"id\":" S("its id") ","
        "\"name\":" S("its name") ","
        "\"state\":" S("held queued placed dispatched running unknown cancelling succeeded failed "
                       "cancelled expired") ","
        "\"final\":" B("the state will not change any more") ","
        "\"class\":" S("its class") ","
        "\"owner\":" S("who submitted it") ","
        "\"team\":" S("its team") ","
        "\"key\":" S("its Idempotency-Key") ","
        "\"place\":" S("of the last attempt") ","
        "\"attempt\":" N("number of the last attempt; 0: none") ","
        "\"submitted\":" TIME("taken") ","
        "\"queued\":" TIME("last queued") ","
        "\"started\":" TIME("last started") ","
        "\"finished\":" TIME("final") ","
        "\"outcome\":" S("how it ended") ","
        "\"exit_code\":" N("of the program") ","
        "\"signal\":" N("that ended the program") ","
        "\"reason\":" S("why it is held, queued again or ended so") ","
        "\"why\":" S("what it waits for, in one line") ","
        "\"cancelled_by\":" S("who asked for it to be cancelled") ","
        "\"attempts\":" LIST_OF("Attempt") ","
        "\"spec\":{\"type\":\"object\",\"description\":\"as it was taken, defaults filled in; not in "
        "lists\"}")},
    {"JobList", NEEDING("\"jobs\"",
        "\"jobs\":" LIST_OF("Job") ","
        "\"next_cursor\":" CURSOR)},
    {"BulkResult", "{\"type\":\"object\",\"required\":[\"jobs\"],\"properties\":{\"jobs\":"
        "{\"type\":\"array\",\"description\":\"one per job, in order\",\"items\":" OBJECT(
            "\"id\":" S("of the job") ","
            "\"existing\":" B("the key had made it before") ","
            "\"problem\":" REF("Problem")) "}}}"},
    {"Event", NEEDING("\"seq\",\"kind\"",
        "\"v\":" N("version of the form") ","
        "\"seq\":" N("order of all events") ","
        "\"at_ms\":" N("wall time in ms") ","
        "\"stream\":" S("job, cluster, burst, budget, policy or tombstone") ","
        "\"kind\":" S("what happened") ","
        "\"id\":" S("of what") ","
        "\"attempt\":" N("of the job") ","
        "\"data\":{\"type\":\"object\",\"description\":\"what belongs to it\"}")},
    {"EventList", NEEDING("\"events\"",
        "\"events\":" LIST_OF("Event") ","
        "\"next_cursor\":" CURSOR ","
        "\"more\":" B("there is a next page now"))},
    {"LogPiece", NEEDING("\"offset\",\"next_offset\",\"complete\"",
        "\"text\":" S("the bytes, when they are UTF-8") ","
        "\"base64\":" S("the bytes, when they are not") ","
        "\"offset\":" N("of the first byte") ","
        "\"next_offset\":" N("to ask for next") ","
        "\"complete\":" B("nothing more will come of this attempt") ","
        "\"attempt\":" N("whose output this is"))},
    {"Verdict", NEEDING("\"place\",\"verdict\"",
        "\"place\":" S("cluster/place") ","
        "\"tier\":" N("of the route, from 1; 0: none") ","
        "\"verdict\":" S("chosen dearer full closed later removed never") ","
        "\"why\":" NULLABLE("in words") ","
        "\"terms\":{\"type\":\"object\",\"description\":\"what each term of the sum is, in billionths of "
        "the currency\",\"additionalProperties\":{\"type\":\"integer\"}},"
        "\"sum\":" N("of the terms") ","
        "\"rent_expected\":" N("billionths of the currency") ","
        "\"booked\":" N("billionths of the currency") ","
        "\"price_hour\":" N("billionths of the currency, for what the job takes") ","
        "\"wait_ms\":" N("until it would start there"))},
    {"Fact", OBJECT(
        "\"what\":" S("which value of which place") ","
        "\"value\":" NULLABLE("as text") ","
        "\"from\":" NULLABLE("who says so") ","
        "\"age_ms\":{\"type\":[\"integer\",\"null\"],\"description\":\"null: it does not age\"}")},
    {"Decision", OBJECT(
        "\"at\":" N("wall time in ms; of a decision that was made, not of an imagined one") ","
        "\"policy\":" S("the version that decided") ","
        "\"route\":" NULLABLE("that takes the job") ","
        "\"tier\":" N("of the chosen place, from 1") ","
        "\"chosen\":" NULLABLE("the place; null: none") ","
        "\"summary\":" S("in one sentence") ","
        "\"burst\":" NULLABLE("that opened the tier") ","
        "\"currency\":" S("of all sums") ","
        "\"can_now\":" N("how many places can take it now") ","
        "\"can_later\":" N("how many can later") ","
        "\"budgets\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
        "\"places\":" LIST_OF("Verdict") ","
        "\"facts\":" LIST_OF("Fact"))},
    {"Explanation", OBJECT(
        "\"job\":" REF("Job") ","
        "\"spec\":{\"type\":\"object\",\"description\":\"of a job that was not submitted\"},"
        "\"decision\":{\"oneOf\":[" REF("Decision") ",{\"type\":\"null\"}]},"
        "\"decided\":" S("then: when it was placed; now: as it would be placed") ","
        "\"policy\":" S("the version that is live") ","
        "\"position\":" OBJECT(
            "\"before\":" N("jobs of the class that go first") ","
            "\"of\":" N("jobs of the class that wait") ","
            "\"class\":" S("its class")) ","
        "\"currency\":" S("of all sums") ","
        "\"bursts\":" LIST_OF("Burst") ","
        "\"budgets\":" LIST_OF("Budget") ","
        "\"render\":" S("exactly what would be sent, when it was asked for"))},
    {"Resources", OBJECT(
        "\"cpus_milli\":" N("thousandths of a CPU; -1: not known") ","
        "\"memory_bytes\":" N("-1: not known") ","
        "\"gpus_milli\":" N("thousandths of a GPU; -1: not known"))},
    {"Place", NEEDING("\"place\",\"cluster\",\"state\"",
        "\"place\":" S("cluster/place") ","
        "\"cluster\":" S("its cluster") ","
        "\"adapter\":" S("how it is reached") ","
        "\"kind\":" S("owned, reserved, on-demand, ...") ","
        "\"state\":" S("ok, drained, unreachable, ...") ","
        "\"reason\":" NULLABLE("why it is so") ","
        "\"running\":" N("jobs of this broker that run there") ","
        "\"waiting\":" N("jobs of this broker that wait there") ","
        "\"max_waiting\":" N("how many may") ","
        "\"running_all\":" N("jobs of everybody; -1: not known") ","
        "\"waiting_all\":" N("jobs of everybody; -1: not known") ","
        "\"total\":" REF("Resources") ","
        "\"free\":" REF("Resources") ","
        "\"unseen\":" REF("Resources") ","
        "\"gpus\":{\"type\":\"object\",\"description\":\"by model\",\"additionalProperties\":" OBJECT(
            "\"total_milli\":" N("thousandths") ","
            "\"free_milli\":" N("thousandths")) "},"
        "\"health_ppm\":" N("1000000: all is well") ","
        "\"age_ms\":" N("of what is known") ","
        "\"silent_ms\":" N("since it last answered") ","
        "\"round_trip_ms\":" N("of a call") ","
        "\"version\":" NULLABLE("of the member's software") ","
        "\"log\":" B("output comes back from there") ","
        "\"drain\":{\"type\":\"object\",\"description\":\"who drained it, why and since when\"}")},
    {"PlaceList", NEEDING("\"places\"",
        "\"places\":" LIST_OF("Place"))},
    {"Drain", "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
        "\"note\":" S("why") "}}"},
    {"Done", "{\"type\":\"object\",\"description\":\"what is now so\"}"},
    {"Policy", OBJECT(
        "\"hash\":" S("names the version") ","
        "\"since\":" S("when it was taken") ","
        "\"by\":" S("who brought it") ","
        "\"text\":" S("the YAML"))},
    {"Burst", NEEDING("\"name\",\"state\"",
        "\"name\":" S("its name") ","
        "\"state\":" S("closed, opening, open or closing") ","
        "\"why\":" S("in words") ","
        "\"since\":" TIME("of this state") ","
        "\"jobs\":" N("that it has placed and that have not ended") ","
        "\"nodes_milli\":" N("thousandths of a machine that they take") ","
        "\"budget\":" S("that pays; empty: none"))},
    {"Budget", NEEDING("\"name\",\"per\",\"limit\"",
        "\"name\":" S("its name") ","
        "\"per\":" S("job, day, week, month or year") ","
        "\"limit\":" S("money, as 25 EUR") ","
        "\"settled\":" S("spent in this period") ","
        "\"booked\":" S("held back for jobs that have not ended"))},
    {"BurstList", OBJECT(
        "\"currency\":" S("of all sums") ","
        "\"bursts\":" LIST_OF("Burst") ","
        "\"budgets\":" LIST_OF("Budget"))},
    {"Document", "{\"type\":\"object\",\"description\":\"OpenAPI 3.1\"}"},
    {NULL, NULL},
};
/* clang-format on */
