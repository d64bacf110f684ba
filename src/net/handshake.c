// HELLO, WELCOME and REFUSE.
#include "net/handshake.h"

#include "base/entropy.h"
#include "base/file.h"
#include "base/log.h"
#include "base/dynamic_library.h"
#include "base/status.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

choir_status chi_hello_add(chi_hello *h, const char *name, const char *fmt, ...)
{
	if (h->facts == CHI_FACTS)
		return choir_fail(CHOIR_INTERNAL, "hello: more than %d facts", CHI_FACTS);
	chi_fact *f = &h->fact[h->facts++];
	char text[4 * CHI_FACT_VALUE];
	va_list args;
	va_start(args, fmt);
	chi_text_format(text, sizeof text, fmt, args);
	va_end(args);
	snprintf(f->name, sizeof f->name, "%s", name);
	chi_text_fit(text, f->value, sizeof f->value);
	return CHOIR_OK;
}

choir_status chi_hello_make(
		chi_hello *h, const char *role, int index, uint64_t job, const char *program)
{
	char file[CHI_FACT_VALUE];
	*h = (chi_hello){ .index = index, .job = job, .pid = getpid() };
	snprintf(h->role, sizeof h->role, "%s", role);
	if (gethostname(h->host, sizeof h->host - 1) != 0)
		snprintf(h->host, sizeof h->host, "?");
	CHOIR_TRY(chi_entropy(&h->incarnation, sizeof h->incarnation));
	chi_dynamic_library_fingerprint(file, sizeof file);
	CHOIR_TRY(chi_hello_add(h, "libchoir", "%s", file));
	chi_file_fingerprint("/proc/self/exe", file, sizeof file);
	return chi_hello_add(h, "program", "%s", program != NULL ? program : file);
}

void chi_hello_pack(const chi_hello *h, chi_pack *p)
{
	chi_pack_text(p, h->role);
	chi_pack_u32(p, (uint32_t) h->index);
	chi_pack_u64(p, h->job);
	chi_pack_u64(p, h->incarnation);
	chi_pack_u64(p, (uint64_t) h->pid);
	chi_pack_text(p, h->host);
	chi_pack_text(p, h->address);
	chi_pack_u32(p, (uint32_t) h->facts);
	for (int i = 0; i < h->facts; i++) {
		chi_pack_text(p, h->fact[i].name);
		chi_pack_text(p, h->fact[i].value);
	}
}

static bool is_clean(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char) *text < 32 || *text == 127)
			return false;
	return true;
}

choir_status chi_hello_unpack(chi_unpack *u, chi_hello *h)
{
	*h = (chi_hello){ 0 };
	chi_unpack_text(u, h->role, sizeof h->role);
	h->index = (int) chi_unpack_u32(u);
	h->job = chi_unpack_u64(u);
	h->incarnation = chi_unpack_u64(u);
	h->pid = (int64_t) chi_unpack_u64(u);
	chi_unpack_text(u, h->host, sizeof h->host);
	chi_unpack_text(u, h->address, sizeof h->address);
	const uint32_t facts = chi_unpack_u32(u);
	u->failed |= facts > CHI_FACTS;
	for (uint32_t i = 0; i < facts && !u->failed; i++) {
		chi_unpack_text(u, h->fact[i].name, sizeof h->fact[i].name);
		chi_unpack_text(u, h->fact[i].value, sizeof h->fact[i].value);
		u->failed |= !is_clean(h->fact[i].name) || !is_clean(h->fact[i].value);
	}
	h->facts = u->failed ? 0 : (int) facts;
	u->failed |= h->index < CHOIR_NONE || !is_clean(h->role) || !is_clean(h->host) ||
			!is_clean(h->address);
	return u->failed ? choir_fail(CHOIR_CORRUPT, "message HELLO: its fields are damaged")
					 : CHOIR_OK;
}

const char *chi_hello_name(const chi_hello *h, char *out, size_t size)
{
	char index[16] = "";
	if (h->index >= 0)
		snprintf(index, sizeof index, " %d", h->index);
	snprintf(out, size, "%s%s (%s, pid %lld)", h->role, index, h->host, (long long) h->pid);
	return out;
}

choir_status chi_hello_check(const chi_hello *own, const chi_hello *peer)
{
	char name[128];
	chi_hello_name(peer, name, sizeof name);
	if (own->job != peer->job)
		return choir_fail(
				CHOIR_INVALID, "%s has another key; the key of this job is needed", name);
	for (int i = 0; i < own->facts || i < peer->facts; i++) {
		const chi_fact *a = &own->fact[i], *b = &peer->fact[i];
		if (i < own->facts && i < peer->facts && strcmp(a->name, b->name) == 0 &&
				strcmp(a->value, b->value) == 0)
			continue;
		return choir_fail(CHOIR_STATE, "%s differs: its %s is \"%s\", but that of %s is \"%s\"",
				name, b->name[0] != '\0' ? b->name : a->name, b->value, own->role, a->value);
	}
	return CHOIR_OK;
}

choir_status chi_handshake_begin(chi_handshake *h, chi_link *l, const chi_hello *own, bool dialled)
{
	memset(h, 0, sizeof *h);
	h->own = own;
	h->dialled = dialled;
	h->index = CHOIR_NONE;
	if (!dialled)
		return CHOIR_OK;
	chi_pack p = { 0 };
	chi_hello_pack(own, &p);
	const choir_status status = chi_link_send_pack(l, CHI_NET_HELLO, 0, &p);
	chi_pack_free(&p);
	return status;
}

static choir_status take_hello(chi_handshake *h, chi_unpack *u)
{
	CHOIR_TRY(chi_hello_unpack(u, &h->peer));
	CHOIR_TRY(chi_unpack_end(u, "HELLO"));
	CHOIR_TRY(chi_hello_check(h->own, &h->peer));
	h->state = CHI_HANDSHAKE_ASKED;
	return CHOIR_OK;
}

static choir_status take_welcome(chi_handshake *h, chi_unpack *u)
{
	CHOIR_TRY(chi_hello_unpack(u, &h->peer));
	h->index = (int) chi_unpack_u32(u);
	size_t bytes;
	const void *welcome = chi_unpack_bytes(u, &bytes);
	u->failed |= bytes > sizeof h->welcome;
	CHOIR_TRY(chi_unpack_end(u, "WELCOME"));
	CHOIR_TRY(chi_hello_check(h->own, &h->peer));
	if (bytes > 0)
		memcpy(h->welcome, welcome, bytes);
	h->welcome_bytes = bytes;
	h->state = CHI_HANDSHAKE_DONE;
	return CHOIR_OK;
}

choir_status chi_reason_take(const void *payload, uint64_t bytes, const char *what)
{
	char text[CHI_ERROR_SIZE];
	chi_unpack u = { .data = payload, .bytes = (size_t) bytes };
	const uint32_t status = chi_unpack_u32(&u);
	chi_unpack_text(&u, text, sizeof text);
	CHOIR_TRY(chi_unpack_end(&u, what));
	if (status == CHOIR_OK || status > CHOIR_INTERNAL)
		return choir_fail(CHOIR_CORRUPT, "message %s: status %u", what, (unsigned) status);
	choir_fail(status == CHOIR_END ? CHOIR_STATE : (choir_status) status, "%s", text);
	return (choir_status) status;
}

choir_status chi_reason_send(chi_link *l, uint16_t kind, choir_status status, const char *text)
{
	chi_pack p = { 0 };
	chi_pack_u32(&p, (uint32_t) status);
	chi_pack_text(&p, text);
	const choir_status sent = chi_link_send_pack(l, kind, 0, &p);
	chi_pack_free(&p);
	return sent;
}

choir_status chi_handshake_take(
		chi_handshake *h, chi_link *l, const chi_net_frame *frame, const void *payload)
{
	chi_unpack u = { .data = payload, .bytes = (size_t) frame->bytes };
	choir_status status;
	if (h->state != CHI_HANDSHAKE_OPEN)
		status = choir_fail(CHOIR_CORRUPT, "handshake: a message of kind %d", frame->kind);
	else if (!h->dialled && frame->kind == CHI_NET_HELLO)
		status = take_hello(h, &u);
	else if (h->dialled && frame->kind == CHI_NET_WELCOME)
		status = take_welcome(h, &u);
	else if (h->dialled && frame->kind == CHI_NET_REFUSE)
		status = chi_reason_take(payload, frame->bytes, "REFUSE");
	else
		status = choir_fail(CHOIR_CORRUPT, "handshake: a message of kind %d; %s is needed",
				frame->kind, h->dialled ? "WELCOME or REFUSE" : "HELLO");
	if (status == CHOIR_OK)
		return CHOIR_OK;
	if (!h->dialled)
		chi_handshake_refuse(h, l);
	h->state = CHI_HANDSHAKE_FAILED;
	return status;
}

choir_status chi_handshake_welcome(chi_handshake *h, chi_link *l, const chi_pack *welcome)
{
	chi_pack p = { 0 };
	if (welcome->bytes > CHI_WELCOME_MAX)
		return choir_fail(CHOIR_INTERNAL, "handshake: a welcome of %zu bytes", welcome->bytes);
	chi_hello_pack(h->own, &p);
	chi_pack_u32(&p, (uint32_t) h->peer.index);
	chi_pack_bytes(&p, welcome->data, welcome->bytes);
	p.failed |= welcome->failed;
	const choir_status status = chi_link_send_pack(l, CHI_NET_WELCOME, 0, &p);
	chi_pack_free(&p);
	h->index = h->peer.index;
	h->state = status == CHOIR_OK ? CHI_HANDSHAKE_DONE : CHI_HANDSHAKE_FAILED;
	return status;
}

void chi_handshake_refuse(chi_handshake *h, chi_link *l)
{
	chi_error why;
	chi_error_save(&why);
	if (why.status != CHOIR_CORRUPT) // not from a Choir process
		chi_log(why.status == CHOIR_TIMEOUT ? CHOIR_LOG_INFO : CHOIR_LOG_WARNING, "refused: %s",
				why.text); // a timeout: the peer dials again
	// If REFUSE cannot be sent at once, the peer sees only the end.
	if (chi_reason_send(l, CHI_NET_REFUSE, why.status, why.text) == CHOIR_OK)
		(void) chi_link_flush(l);
	h->state = CHI_HANDSHAKE_FAILED;
	chi_error_restore(&why);
}
