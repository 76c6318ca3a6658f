"""Words that people begin a password with: seasons, months, weekdays, greetings, what the product is about; in English,
German, French and Spanish, small and without accents. The dictionaries of zxcvbn are English."""

SEASONS = """spring summer autumn fall winter fruehling fruhling fruhjahr fruehjahr sommer herbst printemps ete automne
hiver primavera verano otono invierno"""
MONTHS = """january february march april may june july august september october november december januar jaenner janner
februar maerz marz mai juni juli oktober dezember janvier fevrier mars avril juin juillet aout septembre octobre
novembre decembre enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"""
WEEKDAYS = """monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag
samstag sonnabend sonntag lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes miercoles jueves viernes
sabado domingo"""
GREETINGS = """password passwd pass passwort kennwort geheim motdepasse contrasena contrasenia clave secret secreto
welcome willkommen bienvenue bienvenido bienvenida hello hallo bonjour salut hola login anmelden admin administrator
administrador administrateur user benutzer usuario utilisateur root test demo temp start change changeme firma company
entreprise empresa welt world monde mundo"""
TRADE = """thalweg postgres postgresql pgsql database datenbank basededatos basededonnees replication replikation
replica replicacion server serveur servidor engine console source destination"""
GUESSABLE = frozenset(" ".join((SEASONS, MONTHS, WEEKDAYS, GREETINGS, TRADE)).split())
