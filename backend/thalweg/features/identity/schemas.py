"""Users, sessions and API tokens as the API shows them."""

from datetime import datetime
from typing import Annotated

from pydantic import Field, StrictBool, StrictInt, StringConstraints

from thalweg.kernel.models import NO_CONTROL_CHARACTERS, Body, Name, Resource, Secret
from thalweg.kernel.principal import Demand, Role, UserRole

NewPassword = Annotated[str, StringConstraints(min_length=10, max_length=1000)]


class User(Resource):
    id: str
    name: str
    role: UserRole
    enabled: bool
    second_factor: bool = Field(description="Whether a login needs a code beside the password.")
    created_at: datetime
    updated_at: datetime
    etag: str = Field(description="Send as If-Match when updating.")


class UserCreate(Body):
    name: Name
    role: UserRole = UserRole.VIEWER
    password: NewPassword


class UserUpdate(Body):
    name: Name | None = None
    role: UserRole | None = None
    enabled: StrictBool | None = None


class PasswordChange(Body):
    current_password: Secret | None = Field(
        default=None,
        description="Needed to change your own password; an admin needs none for somebody else's.",
    )
    new_password: NewPassword
    revoke_tokens: StrictBool = Field(
        default=False,
        description="Also revoke the user's API tokens, because anyone who knew the old password may have created "
        "some. The token of the request itself, and those that it was created with, stay valid.",
    )  # fmt: skip


class SessionCreate(Body):
    name: Name
    password: Secret


class Session(Resource):
    """The session of the browser: the cookie is HttpOnly, so `csrf_token` is read from here."""

    user: User
    csrf_token: str | None = Field(
        description="Send as X-CSRF-Token with every change. Null when an API token authenticates."
    )
    expires_at: datetime | None
    second_factor_missing: bool = Field(
        description="True: an admin requires a second factor. Until one is set up, everything else is refused."
    )


Code = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=NO_CONTROL_CHARACTERS)]


class SessionCode(Body):
    code: Code = Field(description="The code that the authenticator shows, or a recovery code.")


class SecondFactor(Resource):
    enabled: bool
    since: datetime | None
    recovery_codes_left: int
    demanded: bool = Field(description="Whether an admin requires one of this user. If so, it cannot be removed.")


class SecondFactorProof(Body):
    current_password: Secret
    code: Code | None = Field(
        default=None, description="A code of the present second factor, or a recovery code. Null: there is none yet."
    )


class SecondFactorDraft(Resource):
    """Shown only once. It takes effect when a code confirms it."""

    secret: str = Field(description="For authenticators that do not scan: base32; six digits, 30 seconds, SHA-1.")
    uri: str = Field(description="The content of the QR code.")
    qr_code: str = Field(description="The QR code: an SVG as a data: address.")


class SecondFactorCode(Body):
    code: Code = Field(description="The code that the authenticator shows for the secret that was prepared.")


class RecoveryCodes(Resource):
    """Each can be used once, instead of a code. Shown only once: only hashes are stored."""

    codes: list[str]


class AccessPolicy(Resource):
    require_second_factor: Demand = Field(description="The users who must have a second factor. API tokens need none.")
    etag: str = Field(description="Send as If-Match when updating.")


class AccessPolicyUpdate(Body):
    require_second_factor: Demand


class Token(Resource):
    id: str
    user_id: str
    user_name: str
    name: str
    role: Role
    prefix: str = Field(description="The first characters of the token, to tell tokens apart.")
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


class TokenCreate(Body):
    name: Name
    role: Role = Field(
        default=Role.VIEWER, description="The token's role, which cannot exceed your own. metrics: read /metrics."
    )
    expires_in_days: Annotated[StrictInt, Field(ge=1, le=3650)] | None = Field(
        default=90,
        description="Null: it never expires. Omitted: 90 days, or the remaining life of the token that creates it.",
    )


class TokenCreated(Resource):
    token: Token
    secret: str = Field(description="The token itself. Shown only once: only its hash is stored.")
