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

const struct schema_row schema_table[] = {
    {"Problem",
     "{\"type\":\"object\",\"description\":\"RFC 9457\",\"required\":[\"type\",\"title\","
     "\"status\"],\"properties\":{"
     "\"type\":" S("urn:tieline:problem:NAME") ","
                                               "\"title\":" S("what kind of problem") ","
                                                                                      "\"status\":" N(
                                                                                          "the HTTP status") ","
                                                                                                             "\"detail\":" S("what is wrong") ","
                                                                                                                                              "\"expected\":" S("what was expected, or what to do") ","
                                                                                                                                                                                                    "\"pointer\":" S("JSON pointer of what is wrong") ","
                                                                                                                                                                                                                                                      "\"line\":" N("of what is wrong, from 1") ","
                                                                                                                                                                                                                                                                                                "\"column\":" N("of what is wrong, from 1") ","
                                                                                                                                                                                                                                                                                                                                            "\"file\":" S(
                                                                                                                                                                                                                                                                                                                                                "that holds it") ","
                                                                                                                                                                                                                                                                                                                                                                 "\"retry\":" B(
                                                                                                                                                                                                                                                                                                                                                                     "another try can help") "}}"},
    {"Attempt", "{\"type\":\"object\",\"required\":[\"number\",\"state\",\"place\"],\"properties\":{"
                "\"number\":" N("from 1") ","
                                          "\"state\":" S("state of the attempt") ","
                                                                                 "\"place\":" S("where") ","
                                                                                                         "\"native_id\":" S("the member's own name for it") ","
                                                                                                                                                            "\"burst\":" S("that opened its tier") ","
                                                                                                                                                                                                   "\"outcome\":" S(
                                                                                                                                                                                                       "how it ended") ","
                                                                                                                                                                                                                       "\"exit_code\":" N("of the program") ","
                                                                                                                                                                                                                                                            "\"signal\":" N("that ended the program") ","
                                                                                                                                                                                                                                                                                                      "\"reason\":" S("in words") ","
                                                                                                                                                                                                                                                                                                                                  "\"placed\":" TIME("decided") ","
                                                                                                                                                                                                                                                                                                                                                                "\"accepted\":" TIME("the member has it") ","
                                                                                                                                                                                                                                                                                                                                                                                                          "\"started\":" TIME("it runs") ","
                                                                                                                                                                                                                                                                                                                                                                                                                                         "\"ended\":" TIME(
                                                                                                                                                                                                                                                                                                                                                                                                                                             "it ended") "}}"},
    {"Job",
     "{\"type\":\"object\",\"required\":[\"id\",\"state\"],\"properties\":{"
     "\"id\":" S("its id") ","
                           "\"name\":" S("its name") ","
                                                     "\"state\":" S(
                                                         "held queued placed dispatched running unknown cancelling succeeded failed "
                                                         "cancelled expired") ","
                                                                              "\"final\":" B("the state will not change any more") ","
                                                                                                                                   "\"class\":" S("its class") ","
                                                                                                                                                               "\"owner\":" S("who submitted it") ","
                                                                                                                                                                                                  "\"team\":" S("its team") ","
                                                                                                                                                                                                                            "\"key\":" S("its Idempotency-Key") ","
                                                                                                                                                                                                                                                                "\"place\":" S(
                                                                                                                                                                                                                                                                    "of the last attempt") ","
                                                                                                                                                                                                                                                                                           "\"attempt\":" N(
                                                                                                                                                                                                                                                                                               "number of the last attempt; 0: none") ","
                                                                                                                                                                                                                                                                                                                                      "\"submitted\":" TIME(
                                                                                                                                                                                                                                                                                                                                          "taken") ","
                                                                                                                                                                                                                                                                                                                                                   "\"queued\":" TIME(
                                                                                                                                                                                                                                                                                                                                                       "last queued") ","
                                                                                                                                                                                                                                                                                                                                                                      "\"started\":" TIME("last started") ","
                                                                                                                                                                                                                                                                                                                                                                                                          "\"finished\":" TIME(
                                                                                                                                                                                                                                                                                                                                                                                                              "final") ","
                                                                                                                                                                                                                                                                                                                                                                                                                       "\"outcome\":" S("how it ended") ","
                                                                                                                                                                                                                                                                                                                                                                                                                                                        "\"exit_code\":" N("of the program") ","
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                             "\"signal\":" N(
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                 "that ended the program") ","
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                           "\"reason\":" S(
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                               "why it is held, queued again or ended so") ","
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                           "\"why\":" S("what it waits for, in one line") ","
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                          "\"attempts\":" LIST_OF("Attempt") ","
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                             "\"spec\":{\"type\":\"object\",\"description\":\"as it was taken, defaults filled in\"}}}"},
    {"JobList", "{\"type\":\"object\",\"required\":[\"jobs\"],\"properties\":{\"jobs\":" LIST_OF(
                    "Job") ",\"next_cursor\":" CURSOR "}}"},
    {"BulkResult",
     "{\"type\":\"object\",\"required\":[\"jobs\"],\"properties\":{\"jobs\":{\"type\":\"array\","
     "\"description\":\"one per job, in order\",\"items\":{\"type\":\"object\",\"properties\":{"
     "\"id\":" S(
         "of the job") ","
                       "\"existing\":" B(
                           "the key had made it before") ","
                                                         "\"problem\":{\"$ref\":\"#/components/schemas/Problem\"}}}}}}"},
    {"Event",
     "{\"type\":\"object\",\"required\":[\"seq\",\"kind\"],\"properties\":{"
     "\"v\":" N(
         "version of the form") ","
                                "\"seq\":" N(
                                    "order of all events") ","
                                                           "\"at_ms\":" N(
                                                               "wall time in ms") ","
                                                                                  "\"stream\":" S(
                                                                                      "job, cluster, burst, budget, policy or tombstone") ","
                                                                                                                                          "\"kind\":" S(
                                                                                                                                              "what happened") ","
                                                                                                                                                               "\"id\":" S(
                                                                                                                                                                   "of what") ","
                                                                                                                                                                              "\"attempt\":" N(
                                                                                                                                                                                  "of the job") ","
                                                                                                                                                                                                "\"data\":{\"type\":\"object\",\"description\":\"what belongs to it\"}}}"},
    {"EventList",
     "{\"type\":\"object\",\"required\":[\"events\"],\"properties\":{\"events\":" LIST_OF(
         "Event") ",\"next_cursor\":" CURSOR ",\"more\":" B("there is a next page now") "}}"},
    {"LogPiece",
     "{\"type\":\"object\",\"required\":[\"offset\",\"next_offset\",\"complete\"],\"properties\":{"
     "\"text\":" S(
         "the bytes, when they are UTF-8") ","
                                           "\"base64\":" S(
                                               "the bytes, when they are not") ","
                                                                               "\"offset\":" N("of the first byte") ","
                                                                                                                    "\"next_offset\":" N("to ask for next") ","
                                                                                                                                                            "\"complete\":" B("nothing more will come of this attempt") ","
                                                                                                                                                                                                                        "\"attempt\":" N(
                                                                                                                                                                                                                            "whose output this is") "}}"},
    {"Explanation",
     "{\"type\":\"object\",\"description\":\"the answer in words, every place with its verdict and "
     "terms, the facts that were used\"}"},
    {"PlaceList",
     "{\"type\":\"object\",\"required\":[\"places\"],\"properties\":{\"places\":{\"type\":\"array\","
     "\"items\":{\"type\":\"object\"}}}}"},
    {"Drain",
     "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"note\":" S("why") "}}"},
    {"Done", "{\"type\":\"object\",\"description\":\"what is now so\"}"},
    {"Policy",
     "{\"type\":\"object\",\"properties\":{\"hash\":" S("names the version") ",\"since\":" S(
         "when it was taken") ",\"by\":" S("who brought it") ",\"text\":" S("the YAML") "}}"},
    {"BurstList",
     "{\"type\":\"object\",\"properties\":{\"bursts\":{\"type\":\"array\",\"items\":{\"type\":"
     "\"object\"}},\"budgets\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}}}"},
    {"Document", "{\"type\":\"object\",\"description\":\"OpenAPI 3.1\"}"},
    {NULL, NULL},
};
