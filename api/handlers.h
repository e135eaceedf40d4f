/* handlers.h - one function per route; the table in routes.c names them. */
#ifndef API_HANDLERS_H
#define API_HANDLERS_H

struct request;

/* api_about.c */
void about_root(struct request *request);
void about_health(struct request *request);
void about_ready(struct request *request);
void about_metrics(struct request *request);
void about_openapi(struct request *request);
/* api_submit.c */
void jobs_submit(struct request *request);
/* api_jobs.c */
void jobs_list(struct request *request);
void jobs_show(struct request *request);
void jobs_cancel(struct request *request);
/* api_events.c */
void events_of_job(struct request *request);
void events_of_all(struct request *request);
/* api_log.c */
void log_read(struct request *request);
/* api_explain.c */
void explain_job(struct request *request);
void explain_imagined(struct request *request);
/* api_places.c */
void places_list(struct request *request);
void places_drain(struct request *request);
void places_undrain(struct request *request);
/* api_policy.c */
void policy_show(struct request *request);
void policy_set(struct request *request);
void policy_bursts(struct request *request);

#endif
