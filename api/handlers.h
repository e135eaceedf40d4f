/* handlers.h - one function per route; the table in endpoints.c names them. */
#ifndef API_HANDLERS_H
#define API_HANDLERS_H

struct request;

/* api_about.c */
void serve_about_root(struct request *request);
void serve_about_health(struct request *request);
void serve_about_ready(struct request *request);
void serve_about_metrics(struct request *request);
void serve_about_openapi(struct request *request);
/* api_submit.c */
void serve_jobs_submit(struct request *request);
/* api_jobs.c */
void serve_jobs_list(struct request *request);
void serve_jobs_show(struct request *request);
void serve_jobs_cancel(struct request *request);
/* api_events.c */
void serve_events_of_job(struct request *request);
void serve_events_of_all(struct request *request);
/* api_log.c */
void serve_log_read(struct request *request);
/* api_explain.c */
void serve_explain_job(struct request *request);
void serve_explain_imagined(struct request *request);
/* api_places.c */
void serve_places_list(struct request *request);
void serve_places_drain(struct request *request);
void serve_places_undrain(struct request *request);
/* api_policy.c */
void serve_policy_show(struct request *request);
void serve_policy_set(struct request *request);
void serve_policy_bursts(struct request *request);

#endif
