"""Session, users and API tokens over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Cookie, Depends, Request, Response

from thalweg.features.identity import login, login_code, policy, second_factor, service, tokens, users
from thalweg.features.identity.opening import Caller, Opened
from thalweg.features.identity.schemas import (
    AccessPolicy,
    AccessPolicyUpdate,
    PasswordChange,
    RecoveryCodes,
    SecondFactor,
    SecondFactorCode,
    SecondFactorDraft,
    SecondFactorProof,
    Session,
    SessionCode,
    SessionCreate,
    Token,
    TokenCreate,
    TokenCreated,
    User,
    UserCreate,
    UserUpdate,
)
from thalweg.kernel.context import (
    HALF_LOGIN_COOKIE,
    SESSION_COOKIE,
    Admin,
    Confined,
    Resources,
    TransactionalRoute,
    Viewer,
    get_resources,
)
from thalweg.kernel.etags import IfMatch
from thalweg.kernel.idempotency import OnceOnly
from thalweg.kernel.models import Id, Page
from thalweg.kernel.pagination import LIMIT_DEFAULT, Cursor, Limit
from thalweg.kernel.problems import Problem

router = APIRouter(route_class=TransactionalRoute, tags=["identity"])


def _caller(request: Request) -> Caller:
    address = request.client.host if request.client else None
    return Caller(address, request.headers.get("user-agent"), request.state.request_id)


def _logged_in(opened: Opened, response: Response, resources: Resources) -> Session:
    response.set_cookie(
        SESSION_COOKIE, opened.cookie, max_age=resources.settings.session_seconds, httponly=True,
        samesite="lax", secure=resources.settings.secure_cookies, path="/",
    )  # fmt: skip
    response.headers["Cache-Control"] = "no-store"
    return opened.session


@router.post("/session", status_code=201, operation_id="session_create")
async def create_session(
    body: SessionCreate,
    request: Request,
    response: Response,
    resources: Annotated[Resources, Depends(get_resources)],
) -> Session:
    """Log in. Sets the session's cookie; failed attempts slow down the next ones.

    A user with a second factor gets 401 second_factor_required and a cookie that is valid for five minutes: send it
    back with a code to /api/v1/session:verify-code.
    """
    answer = await login.log_in(request.state.session, resources, body, _caller(request))
    if isinstance(answer, Opened):
        return _logged_in(answer, response, resources)
    cookie = Response()
    cookie.set_cookie(
        HALF_LOGIN_COOKIE, answer, max_age=login_code.HALF_LOGIN_SECONDS, httponly=True,
        samesite="strict", secure=resources.settings.secure_cookies, path="/api/v1",
    )  # fmt: skip
    raise Problem(
        "second_factor_required", "The password is right; the login needs a code of the second factor, too.",
        "Send the code with the cookie of this answer to POST /api/v1/session:verify-code, within five minutes.",
        headers={"Set-Cookie": cookie.headers["set-cookie"], "Cache-Control": "no-store"},
    )  # fmt: skip


@router.post("/session:verify-code", status_code=201, operation_id="session_verify_code")
async def verify_code(
    body: SessionCode,
    request: Request,
    response: Response,
    resources: Annotated[Resources, Depends(get_resources)],
    half_login: Annotated[str | None, Cookie(alias=HALF_LOGIN_COOKIE)] = None,
) -> Session:
    """The second step of a login: a code from the authenticator, or a recovery code. Wrong codes slow down further
    attempts."""
    opened = await login_code.verify_code(request.state.session, resources, half_login, body.code, _caller(request))
    secure = resources.settings.secure_cookies
    response.delete_cookie(HALF_LOGIN_COOKIE, path="/api/v1", httponly=True, samesite="strict", secure=secure)
    return _logged_in(opened, response, resources)


@router.get("/session", operation_id="session_get")
async def get_session(context: Confined) -> Session:
    """The logged-in user, and the CSRF token to send with changes."""
    return await service.current_session(context)


@router.delete("/session", status_code=204, operation_id="session_delete")
async def delete_session(context: Confined, response: Response) -> None:
    """Log out."""
    await service.log_out(context)
    secure = context.resources.settings.secure_cookies
    response.delete_cookie(SESSION_COOKIE, path="/", httponly=True, samesite="lax", secure=secure)


@router.get("/users", operation_id="users_list")
async def list_users(context: Admin, limit: Limit = LIMIT_DEFAULT, cursor: Cursor = None) -> Page[User]:
    return await users.list_users(context, limit, cursor)


@router.post("/users", status_code=201, operation_id="users_create", response_model=User)
async def create_user(body: UserCreate, context: Admin, once: OnceOnly) -> Response:
    return await once.run_prepared(
        context, lambda: users.hashed(context, body), lambda hashed: users.create_user(context, body, hashed)
    )


@router.get("/users/{user_id}", operation_id="users_get")
async def get_user(user_id: Id, context: Admin, response: Response) -> User:
    user = await users.get_user(context, user_id)
    response.headers["ETag"] = user.etag
    return user


@router.patch("/users/{user_id}", operation_id="users_update")
async def update_user(
    user_id: Id, body: UserUpdate, context: Admin, response: Response, if_match: IfMatch = None
) -> User:
    user = await users.update_user(context, user_id, body, if_match)
    response.headers["ETag"] = user.etag
    return user


@router.delete("/users/{user_id}", status_code=204, operation_id="users_delete")
async def delete_user(user_id: Id, context: Admin) -> None:
    """Delete a user with their sessions and tokens. You cannot delete yourself."""
    await users.delete_user(context, user_id)


@router.post("/users/{user_id}:change-password", status_code=204, operation_id="users_change_password")
async def change_password(user_id: Id, body: PasswordChange, context: Viewer) -> None:
    """Change a password. This ends the user's other sessions. To change your own, send the current one; only an admin
    can change somebody else's."""
    await users.change_password(context, user_id, body)


@router.get("/users/{user_id}/second-factor", operation_id="users_get_second_factor")
async def get_second_factor(user_id: Id, context: Confined) -> SecondFactor:
    """Your own second factor; an admin can read everybody's."""
    return await second_factor.get_second_factor(context, user_id)


@router.post("/users/{user_id}:prepare-second-factor", operation_id="users_prepare_second_factor")
async def prepare_second_factor(user_id: Id, body: SecondFactorProof, context: Confined) -> SecondFactorDraft:
    """Create a secret for your authenticator. An existing one remains valid until a code confirms the new one."""
    return await second_factor.prepare(context, user_id, body)


@router.post("/users/{user_id}:confirm-second-factor", operation_id="users_confirm_second_factor")
async def confirm_second_factor(user_id: Id, body: SecondFactorCode, context: Confined) -> RecoveryCodes:
    """Turn on the prepared second factor. This ends your other sessions. Only this answer shows the recovery codes."""
    return await second_factor.confirm(context, user_id, body)


@router.post("/users/{user_id}:renew-recovery-codes", operation_id="users_renew_recovery_codes")
async def renew_recovery_codes(user_id: Id, body: SecondFactorProof, context: Viewer) -> RecoveryCodes:
    """Create ten new recovery codes. The previous ones become invalid."""
    return await second_factor.renew_recovery_codes(context, user_id, body)


@router.post("/users/{user_id}:remove-second-factor", status_code=204, operation_id="users_remove_second_factor")
async def remove_second_factor(user_id: Id, body: SecondFactorProof, context: Viewer) -> None:
    """Turn off your own second factor. This ends your other sessions. Refused if an admin requires one."""
    await second_factor.remove(context, user_id, body)


@router.post("/users/{user_id}:reset-second-factor", status_code=204, operation_id="users_reset_second_factor")
async def reset_second_factor(user_id: Id, context: Admin) -> None:
    """Turn off the second factor of a user who has lost the device. This ends all sessions of that user."""
    await second_factor.reset(context, user_id)


@router.get("/access-policy", operation_id="access_policy_get")
async def get_access_policy(context: Admin, response: Response) -> AccessPolicy:
    """The requirements for users who log in."""
    found = await policy.get_policy(context)
    response.headers["ETag"] = found.etag
    return found


@router.patch("/access-policy", operation_id="access_policy_update")
async def update_access_policy(
    body: AccessPolicyUpdate, context: Admin, response: Response, if_match: IfMatch = None
) -> AccessPolicy:
    """Require a second factor. From then on, a user without one can only set one up; API tokens need none."""
    changed = await policy.update_policy(context, body, if_match)
    response.headers["ETag"] = changed.etag
    return changed


@router.get("/tokens", operation_id="tokens_list")
async def list_tokens(context: Viewer, limit: Limit = LIMIT_DEFAULT, cursor: Cursor = None) -> Page[Token]:
    """Your API tokens; an admin sees everybody's."""
    return await tokens.list_tokens(context, limit, cursor)


@router.post("/tokens", status_code=201, operation_id="tokens_create", response_model=TokenCreated)
async def create_token(body: TokenCreate, context: Viewer, once: OnceOnly) -> Response:
    """Create an API token. Only this answer shows its secret. A token that is created with another token cannot outlive
    it, and is revoked with it."""
    return await once.run(context, lambda: tokens.create_token(context, body))


@router.delete("/tokens/{token_id}", status_code=204, operation_id="tokens_revoke")
async def revoke_token(token_id: Id, context: Viewer) -> None:
    await tokens.revoke_token(context, token_id)
