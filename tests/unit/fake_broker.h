/* fake_broker.h - broker.h without a broker, for tests of the HTTP side.
 *
 * What a job does is said by its name:
 *     plain    queued until it is cancelled; its log is "hello\n"
 *     hang     its submit is answered only when the broker goes
 *     slow     its log comes in ten pieces, one each 50 ms, then the job succeeds
 *     quiet    its log never gets a byte and never ends
 *     twice    two attempts, "one\n" and "two\n"
 *     binary   its log is no UTF-8
 *     big      its log is 64 MiB
 * refused: 429; explodes: 503 of the store. */
#ifndef TESTS_UNIT_FAKE_BROKER_H
#define TESTS_UNIT_FAKE_BROKER_H

#include "broker/broker.h"

struct broker *fake_broker_create(struct clock *clock);
void fake_broker_set_ready(struct broker *broker, bool ready);

#endif
